"""TorchRL: its wrapper of Gymnasium, its mask and its collector."""

import warnings

import numpy as np
import pytest

import doppler_gym as dg

torch = pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the library itself
    pytest.importorskip("torchrl")
    from tensordict.nn import TensorDictModule
    from torchrl import collectors
    from torchrl.envs import ActionMask, TransformedEnv
    from torchrl.envs.libs.gym import GymEnv, GymWrapper
    from torchrl.envs.utils import check_env_specs

pytestmark = pytest.mark.filterwarnings("ignore")

TASK = "chainmm@p100x4"


def masked(env):
    """The mask is in the observation already; the transform lets random actions keep to it."""
    return TransformedEnv(env, ActionMask(mask_key="action_mask"))


def test_the_specs_of_its_wrapper_hold():
    check_env_specs(GymEnv("DopplerGym/Assign-v0", task=TASK, mode="place"))


@pytest.mark.parametrize("mode", ["place", "sequential", "joint"])
def test_random_actions_under_the_mask_are_legal_to_the_end(mode):
    env = masked(GymWrapper(dg.AssignEnv(TASK, mode=mode, on_illegal="raise")))
    rollout = env.rollout(1000)
    steps = {"place": 76, "joint": 76, "sequential": 152}[mode]
    assert rollout.batch_size == (steps,)
    assert bool(rollout["next", "terminated"][-1])
    actions = rollout["action"]
    legal = rollout["action_mask"].gather(-1, actions.argmax(-1, keepdim=True).long())
    assert bool(legal.bool().all())


def test_a_collector_gathers_whole_episodes():
    env = masked(GymWrapper(dg.AssignEnv(TASK, mode="place", on_illegal="raise")))

    def first_legal(mask):
        return torch.nn.functional.one_hot(mask.to(torch.int8).argmax(-1), 4)

    policy = TensorDictModule(first_legal, in_keys=["action_mask"], out_keys=["action"])
    # Older versions have it under another name.
    make = getattr(collectors, "Collector", None) or collectors.SyncDataCollector
    collector = make(env, policy, frames_per_batch=76, total_frames=152)
    batches = list(collector)
    collector.shutdown()
    assert len(batches) == 2
    makespan = dg.task(TASK).simulate(np.zeros(76, int)).makespan
    for batch in batches:
        total = float(batch["next", "reward"].sum())
        assert total == pytest.approx(-makespan / dg.task(TASK).time_scale, rel=1e-5)
