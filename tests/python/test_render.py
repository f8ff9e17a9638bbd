"""Gantt charts as text and as images."""

import itertools

import gymnasium as gym
import numpy as np
import pytest

import doppler_gym as dg
from doppler_gym import rendering


@pytest.fixture
def chain():
    """0 -> 1 -> 2 of 2 s each, and 3 of 1 s alone; 4 bytes a transfer: 4 s at 1 byte/s."""
    graph = dg.Graph.from_costs(
        [2.0, 2.0, 2.0, 1.0], [4.0, 4.0, 0.0, 0.0], [[0, 1], [1, 2]], name="chain"
    )
    return dg.Task(graph, dg.Cluster.uniform(2), network="independent", name="chain")


def lines_of(env, assignment):
    env.reset(seed=0)
    env.step(np.array(assignment))
    return env.render().splitlines()


def test_text_shows_devices_transfers_and_the_critical_path(chain):
    env = gym.make("DopplerGym/Assign-v0", task=chain, mode="oneshot", render_mode="ansi").unwrapped
    lines = lines_of(env, [0, 1, 1, 0])
    execution = chain.simulate([0, 1, 1, 0])
    assert lines[0] == f"chain: {execution.makespan * 1e3:.6g} ms, 1 transfers"
    rows = [line.split("|")[1] for line in lines[1:]]
    assert len(rows) == 3
    end = execution.makespan
    columns = (np.arange(96) + 0.5) / 96 * end
    for row, device in ((rows[0], 0), (rows[1], 1)):
        for v, mark in ((0, "#"), (1, "#"), (2, "#"), (3, "=")):
            if [0, 1, 1, 0][v] == device:
                inside = (columns > execution.starts[v]) & (columns < execution.ends[v])
                assert set(np.array(list(row))[inside]) == {mark}
    assert rows[2].count("+") == pytest.approx(96 * 4 / end, abs=1)
    assert set(rows[2]) == {" ", "+"}


def test_the_critical_path_is_what_the_end_has_waited_for(chain):
    assert rendering.critical_path(chain.simulate([0, 0, 0, 1])) == ({0, 1, 2}, set())
    assert rendering.critical_path(chain.simulate([0, 1, 0, 1])) == ({0, 1, 2}, {0, 1})
    # Node 3 goes first on its device, and the chain does not wait for it.
    nodes, transfers = rendering.critical_path(chain.simulate([0, 0, 1, 1]))
    assert (nodes, transfers) == ({0, 1, 2}, {0})


@pytest.mark.parametrize("network", ["independent", "channel", "fair"])
def test_the_critical_path_leads_from_zero_to_the_end(network, rng):
    task = dg.Task(dg.workload("llama-layer"), dg.Cluster.preset("p100x4"), network=network)
    for _ in range(5):
        execution = task.simulate(rng.integers(0, 4, task.graph.n_nodes))
        nodes, transfers = rendering.critical_path(execution)
        runs = execution.transfers
        spans = [(execution.starts[v], execution.ends[v]) for v in nodes]
        spans += [(runs[i]["start"], runs[i]["end"]) for i in transfers]
        spans.sort()
        assert spans[0][0] == 0
        assert spans[-1][1] == execution.makespan
        for (_, end), (start, _) in itertools.pairwise(spans):
            assert start == pytest.approx(end, rel=1e-12)


def test_an_episode_under_way_shows_what_is_placed(chain):
    env = dg.AssignEnv(chain, mode="place", render_mode="ansi")
    env.reset(seed=0)
    assert "0 of 4 nodes" in env.render()
    env.step(1)
    text = env.render()
    assert "1 of 4 nodes" in text
    assert "=" not in text.splitlines()[1]
    assert "=" in text.splitlines()[2]


def test_images_show_each_node_where_and_when_it_runs(chain):
    env = gym.make(
        "DopplerGym/Assign-v0", task=chain, mode="oneshot", render_mode="rgb_array"
    ).unwrapped
    env.reset(seed=0)
    empty = env.render()
    assert empty.dtype == np.uint8
    assert empty.ndim == 3
    assert empty.shape[2] == 3
    env.step(np.array([0, 1, 1, 0]))
    image = env.render()
    red = (image == (210, 0, 0)).all(axis=2)
    assert red.any()
    assert not (empty == (210, 0, 0)).all(axis=2).any()
    # The frames of node 0 (device 0) and of nodes 1 and 2 (device 1) start and end in time.
    execution = chain.simulate([0, 1, 1, 0])
    columns = np.flatnonzero(red.any(axis=0))
    left, right = columns.min(), columns.max()
    scale = (right + 1 - left) / execution.makespan
    upper = np.flatnonzero(red[24:44].any(axis=0))
    assert upper.max() - left == pytest.approx(execution.ends[0] * scale, abs=2)


def test_without_a_mode_nothing_is_rendered(chain):
    env = dg.AssignEnv(chain)
    env.reset(seed=0)
    assert env.render() is None


def test_vectors_render_each_environment(chain):
    envs = dg.AssignVectorEnv(2, chain, mode="place", render_mode="ansi")
    envs.reset(seed=0)
    envs.step([0, 1])
    first, second = envs.render()
    assert "1 of 4 nodes" in first
    assert first != second
