"""Stable-Baselines3 and sb3-contrib."""

import warnings

import numpy as np
import pytest

import doppler_gym as dg
from test_environment import assert_same, legal_action

torch = pytest.importorskip("torch")
sb3 = pytest.importorskip("stable_baselines3")
contrib = pytest.importorskip("sb3_contrib")

from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported  # noqa: E402
from stable_baselines3.common.env_checker import check_env as sb3_check  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor  # noqa: E402

from doppler_gym.sb3 import VecEnv  # noqa: E402

TASK = "chainmm@p100x4"


@pytest.mark.parametrize("mode", ["sequential", "joint", "place", "refine", "oneshot"])
def test_the_checker_is_content_with_flat_observations(mode):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sb3_check(dg.AssignEnv(TASK, mode=mode, flat=True))


def test_the_checker_warns_of_shapes_alone_otherwise():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sb3_check(dg.AssignEnv(TASK, mode="place"))
    assert caught
    assert all("unconventional shape" in str(warning.message) for warning in caught)


@pytest.fixture
def chains():
    """Three chains, each quickest on one device alone: small enough to be learned in seconds."""
    torch.set_num_threads(1)  # for networks as small as these
    edges = [[4 * chain + i, 4 * chain + i + 1] for chain in range(3) for i in range(3)]
    graph = dg.Graph.from_costs(np.ones(12), np.full(12, 3.0), edges)
    return dg.Task(graph, dg.Cluster.uniform(3), name="chains")


def mean_makespan(env, choose, n=30):
    """Of n episodes."""
    makespans = []
    for seed in range(n):
        observation, _ = env.reset(seed=seed)
        while env.action_masks().any():
            observation = env.step(choose(observation))[0]
        makespans.append(env.result()["makespan"])
    return np.mean(makespans)


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "place", "flat": True},
        {"mode": "joint", "flat": True},
        {"mode": "joint", "flat": True, "factored": True},
        {"mode": "place"},
    ],
    ids=["place", "joint", "joint factored", "place, arrays by name"],
)
def test_maskable_ppo_trains_on_the_vector_and_beats_random(options, chains):
    options = {**options, "features": "full", "reward": "dense"}
    envs = VecMonitor(VecEnv(16, task=chains, **options))
    assert is_masking_supported(envs)
    model = contrib.MaskablePPO(
        "MlpPolicy" if options.get("flat") else "MultiInputPolicy",
        envs,
        n_steps=12,
        batch_size=48,
        n_epochs=8,
        learning_rate=3e-3,
        gamma=1.0,
        policy_kwargs={"net_arch": [64]},
        seed=0,
    )
    model.learn(24 * 16 * 12)
    env = dg.AssignEnv(chains, **options)
    rng = np.random.default_rng(0)
    at_random = mean_makespan(env, lambda _: legal_action(env, rng))

    def choose(observation):
        action, _ = model.predict(observation, action_masks=env.action_masks())
        return action

    assert mean_makespan(env, choose) < 0.9 * at_random


def test_maskable_ppo_trains_on_a_single_environment():
    env = dg.AssignEnv(TASK, mode="place", flat=True)
    assert is_masking_supported(env)
    model = contrib.MaskablePPO("MlpPolicy", env, n_steps=152, batch_size=76, n_epochs=1, seed=0)
    model.learn(304)
    assert model.num_timesteps == 304


def test_the_vector_tells_what_a_vector_of_single_environments_tells():
    ours = VecEnv(2, task=TASK, mode="place")
    theirs = DummyVecEnv([lambda: dg.AssignEnv(TASK, mode="place")] * 2)
    for envs in (ours, theirs):
        envs.seed(5)
    assert_same(ours.reset(), dict(theirs.reset()))
    rng = np.random.default_rng(0)
    for _ in range(160):
        np.testing.assert_array_equal(get_action_masks(ours), get_action_masks(theirs))
        actions = rng.integers(0, 4, 2)
        (observation, rewards, done, infos) = ours.step(actions)
        want = theirs.step(actions)
        assert_same(observation, dict(want[0]))
        assert rewards.dtype == want[1].dtype
        np.testing.assert_array_equal(rewards, want[1])
        np.testing.assert_array_equal(done, want[2])
        for info, other, over in zip(infos, want[3], done, strict=True):
            if over:
                assert_same(info, other)
            assert_same(ours.reset_infos, theirs.reset_infos)


def test_what_the_vector_cannot_do_is_refused():
    envs = VecEnv(2, task=TASK, mode="place")
    with pytest.raises(dg.UsageError, match="autoreset_mode"):
        VecEnv(2, task=TASK, autoreset_mode="SameStep")
    with pytest.raises(dg.UsageError, match="cannot be set"):
        envs.set_attr("mode", "joint")
    with pytest.raises(dg.UsageError, match="known: action_masks"):
        envs.env_method("clone")
    assert envs.env_is_wrapped(object) == [False, False]
    assert envs.has_attr("action_masks")
    assert not envs.has_attr("no_such_thing")
    envs.set_options({"task": 0})
    with pytest.raises(dg.UsageError, match="options"):
        envs.reset()
