"""AssignEnv: spaces, masks, rewards, ends, copies, and what is refused."""

import copy
import itertools
import json
import pickle
import threading
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env as gymnasium_check

import doppler_gym as dg
from conftest import draw_costs

MODES = ("sequential", "joint", "place", "refine", "oneshot")


@pytest.fixture
def task(rng):
    graph = dg.Graph.from_costs(*draw_costs(rng, 12))
    return dg.Task(graph, dg.Cluster.uniform(3), name="small")


def legal_action(env, rng):
    mask = dg.sample_mask(env)
    if isinstance(mask, tuple):
        return np.array([rng.choice(np.flatnonzero(part)) for part in mask])
    return int(rng.choice(np.flatnonzero(mask)))


def play(env, seed, rng):
    """One random legal episode: all that it told."""
    told = [env.reset(seed=seed)]
    while True:
        told.append(env.step(legal_action(env, rng)))
        if told[-1][2] or told[-1][3]:
            return told


def assert_same(a, b):
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, tuple | list):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            assert_same(one, other)
    elif isinstance(a, np.ndarray) and a.dtype == object:
        assert b.dtype == object
        assert_same(a.tolist(), b.tolist())
    else:
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("features", ["paper", "full"])
@pytest.mark.parametrize("reward", ["sparse", "dense"])
def test_an_episode_ends_with_the_makespan_of_its_assignment(task, mode, features, reward, rng):
    env = dg.AssignEnv(task, mode=mode, features=features, reward=reward)
    told = play(env, 3, rng)
    info = told[-1][4]
    assert len(told) - 1 == {"sequential": 24, "oneshot": 1}.get(mode, 12)
    assert told[-1][2:4] == (True, False)
    assert info["makespan"] == task.simulate(info["assignment"]).makespan
    assert info["lower_bound"] == dg.lower_bound(task)
    critical = dg.agent("critical-path").assign(task)
    assert info["ratio_to_critical_path"] == pytest.approx(
        info["makespan"] / critical.makespan, rel=1e-12
    )
    rewards = sum(step[1] for step in told[1:])
    first = 0.0
    if mode == "refine":
        first = task.simulate(told[0][0]["placement"]).makespan
        assert info["evaluations"] == 13
    assert rewards == pytest.approx((first - info["makespan"]) / task.time_scale, rel=1e-9)
    np.testing.assert_array_equal(told[-1][0]["placement"], info["assignment"])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("flat", [False, True])
def test_observations_are_in_their_space_and_masks_agree(task, mode, flat, rng):
    env = dg.AssignEnv(task, mode=mode, features="full", flat=flat, max_nodes=15, max_devices=4)
    observation, info = env.reset(seed=0)
    over = False
    while not over:
        assert env.observation_space.contains(observation)
        mask = env.action_masks()
        assert mask.dtype == bool
        assert info["action_mask"].dtype == np.int8
        np.testing.assert_array_equal(info["action_mask"], mask)
        if flat:
            assert observation.ndim == 1
            np.testing.assert_array_equal(observation[-mask.size :], mask)
        else:
            assert observation["action_mask"].dtype == np.int8
            np.testing.assert_array_equal(observation["action_mask"], mask)
        observation, _, terminated, truncated, info = env.step(legal_action(env, rng))
        over = terminated or truncated
    assert not env.action_masks().any()


def test_flat_observations_are_the_arrays_one_after_the_other(task, rng):
    env = dg.AssignEnv(task, mode="sequential")
    flat = dg.AssignEnv(task, mode="sequential", flat=True)
    observation, _ = env.reset(seed=0)
    concatenated, _ = flat.reset(seed=0)
    for _ in range(7):
        expected = np.concatenate([array.ravel() for array in observation.values()])
        np.testing.assert_array_equal(concatenated, expected.astype(np.float32))
        action = legal_action(env, rng)
        observation, concatenated = env.step(action)[0], flat.step(action)[0]
    assert list(env.observation_space.keys()) == list(observation)


def test_arrays_of_one_step_are_never_touched_again(task, rng):
    env = dg.AssignEnv(task)
    kept = [env.reset(seed=1)[0]]
    copies = [copy.deepcopy(kept[0])]
    for _ in range(24):
        kept.append(env.step(legal_action(env, rng))[0])
        copies.append(copy.deepcopy(kept[-1]))
    assert_same(kept, copies)
    for a, b in itertools.pairwise(kept):
        assert not any(np.shares_memory(a[key], b[key]) for key in a)
        assert all(array.flags.writeable for array in a.values())


def test_shared_static_arrays_are_one_read_only_object(task, rng):
    env = dg.AssignEnv(task, share_static=True)
    plain = dg.AssignEnv(task)
    first, _ = env.reset(seed=1)
    plain.reset(seed=1)
    action = legal_action(env, rng)
    second = env.step(action)[0]
    assert_same(second, plain.step(action)[0])
    shared = [key for key in first if first[key] is second[key]]
    assert shared == [
        "node_features",
        "edges",
        "edge_features",
        "node_valid",
        "edge_valid",
        "device_valid",
    ]
    for key in shared:
        assert not first[key].flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        first["node_features"][0, 0] = 1


def test_the_same_seed_gives_the_same_episode(task):
    noisy = dg.Task(task.graph, task.cluster, noise=0.2)
    for mode in MODES:
        env = dg.AssignEnv(noisy, mode=mode)
        first = play(env, 7, np.random.default_rng(0))
        assert_same(first, play(dg.AssignEnv(noisy, mode=mode), 7, np.random.default_rng(0)))
        other = play(env, 8, np.random.default_rng(0))
        assert other[-1][4]["makespan"] != first[-1][4]["makespan"]
        info = first[-1][4]
        seed = int(info["engine_seed"])
        assert info["makespan"] == noisy.simulate(info["assignment"], seed=seed).makespan


def test_without_a_seed_the_luck_goes_on_and_starts_anywhere(task):
    env = dg.AssignEnv(task, mode="refine")
    starts = [env.reset(seed=4)[0]["placement"], *(env.reset()[0]["placement"] for _ in range(2))]
    again = [env.reset(seed=4)[0]["placement"], *(env.reset()[0]["placement"] for _ in range(2))]
    assert_same(starts, again)
    assert not np.array_equal(starts[1], starts[2])
    fresh = [dg.AssignEnv(task, mode="refine").reset()[0]["placement"] for _ in range(4)]
    assert any(not np.array_equal(fresh[0], other) for other in fresh[1:])


def test_several_tasks_are_drawn_or_chosen(rng):
    graphs = [dg.Graph.from_costs(*draw_costs(rng, n)) for n in (5, 9)]
    tasks = [dg.Task(graphs[0], dg.Cluster.uniform(2)), dg.Task(graphs[1], dg.Cluster.uniform(4))]
    env = dg.AssignEnv(tasks=tasks, mode="place")
    assert env.observation_space["node_features"].shape == (9, 5)
    assert env.action_space.n == 4
    drawn = {env.reset(seed=seed)[1]["task"] for seed in range(20)}
    assert drawn == {0, 1}
    observation, info = env.reset(seed=0, options={"task": 0})
    assert info["task"] == 0
    assert env.task == tasks[0]
    assert observation["node_valid"].tolist() == [1] * 5 + [0] * 4
    assert info["action_mask"].tolist() == [1, 1, 0, 0]
    while env.action_masks().any():
        info = env.step(legal_action(env, rng))[4]
    assert info["assignment"].shape == (9,)
    assert info["assignment"][5:].tolist() == [-1] * 4
    assert env.result()["assignment"].shape == (5,)
    assert info["makespan"] == tasks[0].simulate(env.result()["assignment"]).makespan


@pytest.mark.parametrize("mode", MODES)
def test_copies_of_every_kind_continue_exactly(task, mode):
    noisy = dg.Task(task.graph, task.cluster, noise=0.1)
    env = dg.AssignEnv(noisy, mode=mode)
    env.reset(seed=5)
    for _ in range(0 if mode == "oneshot" else 3):
        env.step(legal_action(env, np.random.default_rng(1)))
    restored = dg.AssignEnv(noisy, mode=mode)
    restored.restore(env.serialize())
    copies = [env.clone(), copy.deepcopy(env), pickle.loads(pickle.dumps(env)), restored]

    def rest(one):
        rng = np.random.default_rng(2)
        told = []
        while one.action_masks().any():
            told.append(one.step(legal_action(one, rng)))
        return [*told, one.reset(), play(one, None, rng)]

    want = rest(env)
    for other in copies:
        assert_same(rest(other), want)


def test_a_copy_shares_no_state(task):
    env = dg.AssignEnv(task, mode="place")
    env.reset(seed=0)
    other = env.clone()
    other.step(1)
    assert (env.step(0)[0]["placement"] >= 0).sum() == 1
    assert env.action_space is not other.action_space


def test_an_illegal_action_costs_and_changes_nothing(task):
    env = dg.AssignEnv(task, mode="sequential")
    before, info = env.reset(seed=0)
    illegal = int(np.flatnonzero(info["action_mask"] == 0)[0])
    for n in range(1, 13):
        observation, reward, terminated, truncated, info = env.step(illegal)
        assert (reward, terminated, truncated) == (-1.0, False, n == 12)
        assert info["illegal"] is True
        if n < 12:
            assert_same(observation, before)
    assert env.episode_return == 0
    with pytest.raises(dg.EpisodeError, match=r"call reset\(\)"):
        env.step(illegal)


def test_an_illegal_action_raises_if_so_asked(task):
    env = dg.AssignEnv(task, mode="sequential", on_illegal="raise")
    env.reset(seed=0)
    state = env.serialize()
    with pytest.raises(dg.IllegalActionError, match="legal: "):
        env.step(12)
    assert env.serialize() == state
    assert issubclass(dg.IllegalActionError, dg.UsageError)


@pytest.mark.parametrize(
    ("mode", "action"),
    [
        ("place", -1),
        ("place", 3),
        ("place", 2**70),
        ("place", 1.0),
        ("place", float("nan")),
        ("place", True),
        ("place", None),
        ("place", "1"),
        ("place", [1]),
        ("place", np.array([1])),
        ("place", np.float32(1)),
        ("sequential", 15),
        ("joint", 36),
        ("oneshot", 1),
        ("oneshot", np.zeros(11, int)),
        ("oneshot", np.zeros((1, 12), int)),
        ("oneshot", np.zeros(12)),
        ("oneshot", np.full(12, np.nan)),
        ("oneshot", np.full(12, 3)),
        ("oneshot", np.full(12, -1)),
    ],
)
def test_what_is_no_action_of_the_space_is_refused(task, mode, action):
    env = dg.AssignEnv(task, mode=mode)
    env.reset(seed=0)
    state = env.serialize()
    with pytest.raises(dg.UsageError, match=r"action.*(takes|expected)"):
        env.step(action)
    assert env.serialize() == state


@pytest.mark.parametrize("kind", [int, np.int64, np.int32, np.uint8, np.array])
def test_whole_numbers_of_every_kind_are_actions(task, kind):
    env = dg.AssignEnv(task, mode="place")
    env.reset(seed=0)
    observation = env.step(kind(2))[0]
    assert observation["placement"].max() == 2


def test_steps_out_of_order_are_refused(task, rng):
    env = dg.AssignEnv(task)
    with pytest.raises(dg.EpisodeError, match="no episode is under way"):
        env.step(0)
    with pytest.raises(dg.EpisodeError, match="has not ended"):
        env.result()
    play(env, 0, rng)
    with pytest.raises(dg.EpisodeError, match="has ended"):
        env.step(0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "placing"}, "placing"),
        ({"reward": "none"}, "sparse"),
        ({"features": "all"}, "paper"),
        ({"order": "random"}, "topological"),
        ({"engine": "simulater"}, "simulator"),
        ({"engine": 3}, "expected a str"),
        ({"on_illegal": "ignore"}, "penalize"),
        ({"factored": 1}, "True or False"),
        ({"flat": "yes"}, "True or False"),
        ({"max_nodes": 11}, "12"),
        ({"max_nodes": 2.5}, "whole number"),
        ({"max_devices": 2}, "3"),
        ({"max_edges": 1}, "leave it out"),
        ({"memory_penalty": float("nan")}, "memory_penalty"),
        ({"memory_penalty": -1}, "positive"),
        ({"mode": "place", "factored": True}, "joint"),
        ({"mode": "refine", "initial": [0] * 11}, "12"),
        ({"mode": "refine", "initial": [3] * 12}, "device"),
        ({"mode": "refine", "initial": [0.5] * 12}, "whole numbers"),
        ({"mode": "refine", "initial": [[0] * 12]}, "shape"),
        ({"render_mode": "human"}, "rgb_array"),
    ],
)
def test_unknown_or_wrong_options_are_refused(task, options, message):
    with pytest.raises((dg.UsageError, dg.InvalidError), match=message):
        dg.AssignEnv(task, **options)


def test_tasks_that_are_none_are_refused(task):
    for arguments in ({}, {"task": task, "tasks": [task]}, {"tasks": "chainmm@p100x4"}):
        with pytest.raises(dg.UsageError, match="task"):
            dg.AssignEnv(**arguments)
    with pytest.raises(dg.UsageError, match="did you mean"):
        dg.AssignEnv("chainm@p100x4")
    with pytest.raises(dg.UsageError, match="name or a Task"):
        dg.AssignEnv(task.graph)
    with pytest.raises(dg.InvalidError, match="at least one task"):
        dg.AssignEnv(tasks=[])
    with pytest.raises(TypeError, match="modus"):
        dg.AssignEnv(task, modus="place")


def test_wrong_seeds_and_options_of_reset_are_refused(task):
    env = dg.AssignEnv(task)
    for seed in (-1, 2**64, 1.5, "1", True):
        with pytest.raises(dg.UsageError, match="seed"):
            env.reset(seed=seed)
    for number in (-1, 1, 0.5):
        with pytest.raises(dg.UsageError, match="task"):
            env.reset(options={"task": number})
    with pytest.raises(dg.UsageError, match="known: task"):
        env.reset(options={"tasks": 0})
    env.reset(seed=np.int64(3), options={"task": 0})


def test_states_that_are_foreign_damaged_or_older_are_refused(task, rng):
    env = dg.AssignEnv(task)
    env.reset(seed=0)
    env.step(legal_action(env, rng))
    state = env.serialize()
    other = dg.AssignEnv(task, mode="place")
    other.reset(seed=1)
    before = other.serialize()
    older = state[:4] + (0).to_bytes(4, "little") + state[8:]
    damaged = state[:40] + bytes([state[40] ^ 1]) + state[41:]
    for wrong, message in (
        (state, "another environment"),
        (older, "version 0"),
        (damaged, "checksum"),
        (state[:-9], "damaged"),
        (b"", "no serialized state"),
        (b"something else", "no serialized state"),
    ):
        with pytest.raises(dg.InvalidError, match=message):
            other.restore(wrong)
        assert other.serialize() == before
    with pytest.raises(dg.UsageError, match="expected bytes"):
        other.restore("text")


def test_out_of_memory_is_told_and_penalized():
    task = dg.task("chainmm@p100x4")
    parts = task.cluster.to_json()

    document = json.loads(parts)
    for device in document["devices"]:
        device["memory"] = 1.0
    cluster = dg.Cluster.from_json(json.dumps(document))
    env = dg.AssignEnv(
        dg.Task(task.graph, cluster, enforce_memory=True), mode="oneshot", memory_penalty=7.0
    )
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step(np.zeros(task.graph.n_nodes, int))
    assert (reward, terminated) == (-7.0, True)
    assert info["makespan"] == float("inf")
    assert "memory" in info["failure"]


@pytest.mark.parametrize("mode", MODES)
def test_gymnasiums_checker_is_content(task, mode):
    del task
    env = gym.make("DopplerGym/Assign-v0", task="chainmm@p100x4", mode=mode)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gymnasium_check(env.unwrapped)


def test_every_task_has_an_id_that_gymnasium_makes():
    ids = [name for name in gym.registry if name.startswith("DopplerGym/")]
    assert {
        "DopplerGym/Assign-v0",
        "DopplerGym/llama-layer.p100x4-v0",
        "DopplerGym/published.llama-layer-v0",
    } <= set(ids)
    named = {dg.environment_id(name) for name in dg.tasks()}
    assert named - {None} == set(ids) - {"DopplerGym/Assign-v0"}
    env = gym.make("DopplerGym/published.llama-layer-v0", mode="place", flat=True)
    assert env.unwrapped.task == dg.task("published/llama-layer")
    env.reset(seed=0)
    env.step(0)


def test_masks_are_in_the_form_that_sample_takes(task):
    env = dg.AssignEnv(task, mode="sequential")
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(24):
        env.step(env.action_space.sample(dg.sample_mask(env)))
    assert env.result()["makespan"] > 0
    env = dg.AssignEnv(task, mode="joint", factored=True)
    env.reset(seed=0)
    assert env.action_space.nvec.tolist() == [12, 3]
    env.action_space.seed(0)
    for _ in range(12):
        env.step(env.action_space.sample(dg.sample_mask(env)))
    assert env.result()["makespan"] > 0


def test_two_thousand_masked_actions_work(rng):
    graph = dg.Graph.from_costs(*draw_costs(rng, 500))
    env = dg.AssignEnv(dg.Task(graph, dg.Cluster.uniform(4)), mode="joint")
    assert env.action_space.n == 2000
    told = play(env, 0, rng)
    assert told[-1][2]
    assert told[0][1]["action_mask"].shape == (2000,)


def test_joint_actions_beyond_a_hundred_thousand_are_refused_with_advice(rng):
    graph = dg.Graph.from_costs(np.ones(30_000), np.ones(30_000), [[0, 1]])
    task = dg.Task(graph, dg.Cluster.uniform(4))
    with pytest.raises(dg.InvalidError, match="factored"):
        dg.AssignEnv(task, mode="joint")
    assert dg.AssignEnv(task, mode="joint", factored=True).action_space.nvec.tolist() == [30_000, 4]


def test_async_vectors_of_gymnasium_work(task):
    envs = gym.vector.AsyncVectorEnv([lambda: dg.AssignEnv(task, mode="place")] * 2)
    try:
        observation, infos = envs.reset(seed=3)
        assert observation["placement"].shape == (2, 12)
        for _ in range(12):
            observation, rewards, terminated, _, infos = envs.step(np.array([0, 1]))
        assert terminated.all()
        for i in range(2):
            makespan = task.simulate(np.full(12, i)).makespan
            assert infos["makespan"][i] == makespan
            assert rewards[i] == pytest.approx(-makespan / task.time_scale, rel=1e-12)
    finally:
        envs.close()


def test_threads_that_share_an_environment_are_refused_not_mixed_up(task):
    env = dg.AssignEnv(task, mode="oneshot")
    faults, messages, makespans = [], [], set()

    def work():
        for _ in range(300):
            try:
                env.reset(seed=0)
                makespans.add(env.step(np.zeros(12, int))[4]["makespan"])
            except dg.UsageError as error:  # EpisodeError is one
                messages.append(str(error))
            except BaseException as error:
                faults.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert makespans == {task.simulate(np.zeros(12, int)).makespan}
    assert all("thread" in message or "episode" in message for message in messages)
