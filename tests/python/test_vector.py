"""AssignVectorEnv against Gymnasium's own vector over single environments."""

import copy
import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import doppler_gym as dg
from conftest import draw_costs
from test_environment import assert_same

N_ENVS = 3


@pytest.fixture
def tasks(rng):
    graphs = [dg.Graph.from_costs(*draw_costs(rng, n)) for n in (4, 6)]
    return [
        dg.Task(graphs[0], dg.Cluster.uniform(2), name="four"),
        dg.Task(graphs[1], dg.Cluster.uniform(3), name="six", noise=0.3),
    ]


def actions_of(infos, rng, multi_discrete=None):
    """A legal action each, where there is one; now and then an illegal one."""
    actions = []
    for mask in infos["action_mask"]:
        parts = [mask] if multi_discrete is None else np.split(mask, np.cumsum(multi_discrete)[:-1])
        action = [
            int(rng.integers(len(part)))
            if rng.random() < 0.15 or not part.any()
            else int(rng.choice(np.flatnonzero(part)))
            for part in parts
        ]
        actions.append(action[0] if multi_discrete is None else action)
    return np.array(actions)


@pytest.mark.parametrize("autoreset", list(AutoresetMode))
@pytest.mark.parametrize("mode", ["sequential", "joint", "place", "refine", "oneshot"])
@pytest.mark.parametrize("flat", [False, True])
def test_it_tells_what_a_vector_of_single_environments_tells(tasks, autoreset, mode, flat):
    options = {"tasks": tasks, "mode": mode, "flat": flat, "reward": "dense"}
    ours = dg.AssignVectorEnv(N_ENVS, autoreset_mode=autoreset, threads=2, **options)
    theirs = SyncVectorEnv([lambda: dg.AssignEnv(**options)] * N_ENVS, autoreset_mode=autoreset)
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert ours.metadata["autoreset_mode"] is autoreset
    sizes = getattr(ours.single_action_space, "nvec", None)
    rng = np.random.default_rng(5)
    told = ours.reset(seed=11)
    assert_same(told, theirs.reset(seed=11))
    infos, n_ended = told[1], 0
    for _ in range(60):
        actions = actions_of(infos, rng, sizes)
        told = ours.step(actions)
        assert_same(told, theirs.step(actions))
        assert ours.observation_space.contains(told[0])
        infos, ended = told[4], told[2] | told[3]
        n_ended += ended.sum()
        if autoreset is AutoresetMode.DISABLED and ended.any():
            again = {"reset_mask": ended}
            told = ours.reset(options=dict(again))
            assert_same(told, theirs.reset(options=dict(again)))
            infos = {"action_mask": ours.action_masks().astype(np.int8)}
    assert n_ended > N_ENVS


def test_the_number_of_threads_changes_nothing(tasks):
    def episode(threads):
        envs = dg.AssignVectorEnv(9, tasks=tasks, threads=threads)
        told = [envs.reset(seed=2)]
        rng = np.random.default_rng(0)
        for _ in range(30):
            told.append(envs.step(actions_of(told[-1][-1], rng)))
        return told

    assert_same(episode(1), episode(4))


def test_make_vec_makes_it_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        envs = gym.make_vec("DopplerGym/chainmm.p100x4-v0", num_envs=2, mode="place")
        other = gym.make_vec(
            "DopplerGym/Assign-v0", num_envs=2, task="chainmm@p100x4", autoreset_mode="SameStep"
        )
    assert type(envs.unwrapped) is dg.AssignVectorEnv
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert other.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    envs.reset(seed=0)
    assert envs.step(envs.action_space.sample())[1].shape == (2,)


def test_static_arrays_are_shared_and_dynamic_ones_are_new(tasks):
    envs = dg.AssignVectorEnv(2, tasks[0], mode="place")
    first, _ = envs.reset(seed=0)
    kept = copy.deepcopy(first)
    second = envs.step(np.array([0, 1]))[0]
    assert_same(first, kept)
    shared = {key for key in first if np.shares_memory(first[key], second[key])}
    assert shared == {
        "node_features",
        "edges",
        "edge_features",
        "node_valid",
        "edge_valid",
        "device_valid",
    }
    assert not any(first[key].flags.writeable for key in shared)


@pytest.mark.parametrize("autoreset", list(AutoresetMode))
def test_copies_continue_exactly(tasks, autoreset):
    envs = dg.AssignVectorEnv(N_ENVS, tasks=tasks, mode="place", autoreset_mode=autoreset)
    _, infos = envs.reset(seed=6)
    rng = np.random.default_rng(1)
    for _ in range(3):
        infos = envs.step(actions_of(infos, rng))[4]
    restored = dg.AssignVectorEnv(N_ENVS, tasks=tasks, mode="place", autoreset_mode=autoreset)
    restored.restore(envs.serialize())
    copies = [copy.deepcopy(envs), pickle.loads(pickle.dumps(envs)), restored]

    def rest(one):
        rng = np.random.default_rng(3)
        told = []
        infos = {"action_mask": one.action_masks()}
        for _ in range(1 if autoreset is AutoresetMode.DISABLED else 20):
            told.append(one.step(actions_of(infos, rng)))
            infos = told[-1][4]
        return told

    want = rest(envs)
    for other in copies:
        assert_same(rest(other), want)


def test_what_does_not_fit_is_refused_and_changes_nothing(tasks):
    envs = dg.AssignVectorEnv(2, tasks[0], mode="place", on_illegal="raise", max_devices=3)
    with pytest.raises(dg.EpisodeError, match="environment 0"):
        envs.step([0, 0])
    envs.reset(seed=0)
    state = envs.serialize()
    for actions, message in (
        ([0], "shape"),
        ([0, 0, 0], "shape"),
        ([[0], [0]], "shape"),
        ([0.0, 1.0], "whole numbers"),
        ([0, np.nan], "whole numbers"),
        ([0, 3], r"actions\[1\] is 3"),
        ([-1, 0], r"actions\[0\] is -1"),
        (None, "whole numbers"),
    ):
        with pytest.raises(dg.UsageError, match=message):
            envs.step(actions)
    with pytest.raises(dg.IllegalActionError, match="environment 1"):
        envs.step([0, 2])
    assert envs.serialize() == state
    for seed in ([1], [1, 2, 3], "1", 1.5, -1, [0, -1]):
        with pytest.raises(dg.UsageError, match="seed"):
            envs.reset(seed=seed)
    for mask in ([True, False], np.array([1, 0]), np.zeros(2, bool), np.ones(3, bool)):
        with pytest.raises(dg.UsageError, match="reset_mask"):
            envs.reset(options={"reset_mask": mask})
    with pytest.raises(dg.UsageError, match="known: reset_mask"):
        envs.reset(options={"task": 0})
    with pytest.raises(dg.InvalidError, match="states"):
        envs.restore([])
    assert envs.serialize() == state


def test_unknown_options_are_refused(tasks):
    for options, message in (
        ({"num_envs": 0}, "num_envs"),
        ({"num_envs": 2.5}, "num_envs"),
        ({"threads": -1}, "threads"),
        ({"autoreset_mode": "later"}, "NextStep"),
        ({"render_mode": "human"}, "rgb_array"),
        ({"mode": "placing"}, "placing"),
    ):
        with pytest.raises(dg.UsageError, match=message):
            dg.AssignVectorEnv(**{"task": tasks[0], **options})


def test_a_finished_environment_must_be_reset_where_autoreset_is_disabled(tasks):
    envs = dg.AssignVectorEnv(2, tasks[0], mode="oneshot", autoreset_mode="Disabled")
    envs.reset(seed=0)
    envs.step(np.zeros((2, 4), int))
    with pytest.raises(dg.EpisodeError, match="environment 0"):
        envs.step(np.zeros((2, 4), int))
