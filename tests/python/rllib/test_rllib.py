"""RLlib: PPO on its new API stack with its module for action masks."""

import numpy as np
import pytest

import doppler_gym as dg
from doppler_gym.rllib import Env

torch = pytest.importorskip("torch")
ray = pytest.importorskip("ray")
# Ray alone, which the leaderboard uses, does not bring what RLlib needs.
pytest.importorskip("tree", reason="RLlib has an environment of its own: build/venv-rllib")

from ray.rllib.algorithms.ppo import PPOConfig  # noqa: E402
from ray.rllib.core.columns import Columns  # noqa: E402
from ray.rllib.core.rl_module.rl_module import RLModuleSpec  # noqa: E402
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import (  # noqa: E402
    ActionMaskingTorchRLModule,
)
from ray.tune import register_env  # noqa: E402

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]

TASK = "chainmm@p100x4"
BATCH = 304  # four episodes


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """One machine that computes nothing elsewhere."""
    ray.init(num_cpus=1, include_dashboard=False, object_store_memory=2**27, log_to_driver=False)
    yield
    ray.shutdown()


def algorithm_for(environment, options):
    """PPO in this process; an illegal action ends it by an exception."""
    config = (
        PPOConfig()
        .environment(environment, env_config={**options, "on_illegal": "raise"})
        .env_runners(num_env_runners=0, rollout_fragment_length=BATCH)
        .learners(num_learners=0)
        .training(train_batch_size_per_learner=BATCH, minibatch_size=76, num_epochs=2, gamma=1.0)
        .rl_module(rl_module_spec=RLModuleSpec(module_class=ActionMaskingTorchRLModule))
        .debugging(seed=0)
    )
    return config.build_algo()


def copied(module):
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


@pytest.mark.parametrize(
    "options",
    [{"mode": "place"}, {"mode": "place", "max_devices": 6}, {"mode": "sequential"}],
    ids=["place", "place padded", "sequential"],
)
def test_ppo_with_action_masks_trains_three_iterations(options):
    register_env("DopplerGym", Env)
    options = {"task": TASK, **options}
    task = dg.task(TASK)
    algorithm = algorithm_for("DopplerGym", options)
    assert isinstance(algorithm.get_module(), ActionMaskingTorchRLModule)
    before = copied(algorithm.get_module())
    steps = 152 if options["mode"] == "sequential" else 76
    for iteration in range(1, 4):
        results = algorithm.train()
        runners = results["env_runners"]
        assert results["num_env_steps_sampled_lifetime"] == iteration * BATCH
        assert runners["episode_len_mean"] == steps
        # No assignment is quicker than the lower bound.
        assert runners["episode_return_max"] <= -dg.lower_bound(task) / task.time_scale
        assert np.isfinite(runners["episode_return_min"])
        after = copied(algorithm.get_module())
        assert any(not torch.equal(before[name], after[name]) for name in before)
        before = after

    # The module alone plays an episode without an illegal action.
    env = Env({**options, "on_illegal": "raise"})
    module = algorithm.get_module()
    observation, _ = env.reset(seed=1)
    total, over = 0.0, False
    while not over:
        assert env.observation_space.contains(observation)
        batch = {key: torch.from_numpy(value[None].copy()) for key, value in observation.items()}
        logits = module.forward_inference({Columns.OBS: batch})[Columns.ACTION_DIST_INPUTS][0]
        illegal = observation["action_mask"] == 0
        assert (logits.detach().numpy()[illegal] < -1e30).all()
        observation, reward, over, truncated, _ = env.step(int(logits.argmax()))
        assert not truncated
        total += reward
    result = env.unwrapped.result()
    assert result["makespan"] == task.simulate(result["assignment"]).makespan
    assert total == pytest.approx(-result["makespan"] / task.time_scale)
    algorithm.stop()


def test_the_class_is_an_environment_that_rllib_makes_itself():
    algorithm = algorithm_for(Env, {"task": TASK, "mode": "place"})
    assert algorithm.train()["env_runners"]["num_episodes"] == BATCH / 76
    algorithm.stop()
