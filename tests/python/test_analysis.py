"""Levels, critical path, bound and time scale against NetworkX and exhaustive search."""

import itertools

import networkx as nx
import numpy as np
import pytest

import doppler_gym as dg
from conftest import draw_costs


def weighted(task, *, compute_only=False):
    """A DiGraph whose longest path from START to v is t(v), and from v to END is b(v)."""
    graph, cluster = task.graph, task.cluster
    mean = task.cost_model.seconds(graph, cluster).mean(axis=1)
    pairs = list(itertools.permutations(range(cluster.n_devices), 2))
    routes = [cluster.route(s, t) for s, t in pairs]
    other = nx.DiGraph()
    for v in range(graph.n_nodes):
        other.add_edge(("in", v), ("out", v), weight=mean[v])
    for (p, r), size in zip(graph.edges.tolist(), graph.edge_bytes, strict=True):
        delay = np.mean([route.latency + size / route.bandwidth for route in routes] or [0])
        other.add_edge(("out", p), ("in", r), weight=0 if compute_only else delay)
    return other


def longest(other, start):
    """Longest path from `start` to every node that it reaches."""
    best = {start: 0.0}
    for v in nx.topological_sort(other):
        if v in best:
            for _, w, weight in other.out_edges(v, data="weight"):
                best[w] = max(best.get(w, 0.0), best[v] + weight)
    return best


@pytest.mark.parametrize("cluster", ["uniform(1)", "uniform(3)", "ring(4)", "mixed"])
@pytest.mark.parametrize("compute_only", [False, True])
def test_levels_and_critical_path_are_longest_paths_of_networkx(cluster, compute_only, rng):
    for _ in range(5):
        task = dg.Task(dg.Graph.from_costs(*draw_costs(rng, 20)), dg.Cluster.preset(cluster))
        other = weighted(task, compute_only=compute_only)
        levels = dg.levels(task, compute_only=compute_only)
        for v in range(20):
            ahead = longest(other, ("in", v))
            assert levels.b_level[v] == pytest.approx(max(ahead.values()))
            behind = longest(other.reverse(), ("out", v))
            assert levels.t_level[v] == pytest.approx(max(behind.values()))
            follower = levels.b_next[v]
            if follower >= 0:
                assert follower in task.graph.edges[task.graph.edges[:, 0] == v, 1]
        path = dg.critical_path(task, compute_only=compute_only)
        assert path.seconds == pytest.approx(nx.dag_longest_path_length(other))
        steps = [("in", int(path.nodes[0]))]
        for v in path.nodes.tolist():
            steps += [("in", v), ("out", v)]
        assert nx.path_weight(other, steps[1:], "weight") == pytest.approx(path.seconds)
        assert levels.b_level.max() == path.seconds


def test_levels_of_the_literature_are_met(reference):
    example = reference("literature/topcuoglu2002.json")
    graph = dg.Graph.from_costs(example["compute"], None, np.array(example["edges"], float))
    want = [108, 77, 80, 80, 69, 190 / 3, 128 / 3, 107 / 3, 133 / 3, 44 / 3]
    np.testing.assert_allclose(
        dg.levels(dg.Task(graph, dg.Cluster.uniform(3))).b_level, want, rtol=1e-9
    )


@pytest.mark.parametrize("network", ["independent", "channel", "fair"])
def test_no_assignment_beats_the_bound(network, rng):
    for _ in range(10):
        graph = dg.Graph.from_costs(*draw_costs(rng, 7, n_devices=3))
        task = dg.Task(graph, dg.Cluster.uniform(3), network=network)
        every = np.array(list(itertools.product(range(3), repeat=7)))
        best = task.simulator().makespans(every, threads=2).min()
        bound = dg.lower_bound(task)
        assert bound <= best * (1 + 1e-9)
        least = graph.raw_compute.min(axis=1)
        assert bound >= least.sum() / 3 * (1 - 1e-9)


def test_time_scale_is_the_larger_of_load_and_path(rng):
    for n_devices in (1, 2, 5):
        task = dg.Task(dg.Graph.from_costs(*draw_costs(rng, 20)), dg.Cluster.uniform(n_devices))
        load = task.graph.raw_compute.sum() / n_devices
        path = dg.critical_path(task, compute_only=True).seconds
        assert task.time_scale == pytest.approx(max(load, path))
    assert dg.Task(dg.Graph(), dg.Cluster.uniform(1)).time_scale == 1.0


def test_what_is_no_task_is_refused(diamond):
    task = dg.Task(diamond, dg.Cluster.uniform(2))
    with pytest.raises(TypeError):
        dg.levels(diamond)
    with pytest.raises(TypeError):
        dg.critical_path(task, True)
    with pytest.raises(dg.UsageError, match="compute_only: expected True or False, got 1"):
        dg.levels(task, compute_only=1)


def test_views_outlive_their_levels(diamond):
    task = dg.Task(diamond, dg.Cluster.uniform(2))
    b_level = dg.levels(task).b_level
    nodes = dg.critical_path(task).nodes
    junk = [dg.levels(task) for _ in range(50)]
    # 4; 3 + 30 + 4; 2 + 20 + 4; 1 + 10 + 37
    np.testing.assert_array_equal(b_level, [48, 26, 37, 4])
    np.testing.assert_array_equal(nodes, [0, 2, 3])
    assert len(junk) == 50
