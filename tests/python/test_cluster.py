"""Cluster and CostModel."""

import copy
import json
import math
import pickle

import numpy as np
import pytest

import doppler_gym as dg


def test_presets_have_the_published_figures():
    cluster = dg.Cluster.preset("p100x4")
    assert (cluster.name, cluster.n_devices, cluster.enforce_memory) == ("p100x4", 4, True)
    device = cluster.devices[0]
    assert device.peak_flops["float32"] == 9.3e12
    assert device.peak_bandwidth == 732e9
    assert 0 < device.flops["float32"] <= device.peak_flops["float32"]
    assert device == cluster.devices[3]
    assert "p100" in repr(device)
    # One egress channel a device: transfers out of a device meet, others do not.
    channels = [[cluster.route(s, t).channel for t in range(4) if t != s] for s in range(4)]
    assert all(len(set(row)) == 1 for row in channels)
    assert len({row[0] for row in channels}) == 4
    assert dg.Cluster.preset("v100x8").n_devices == 8


def test_uniform_clusters_have_rate_one():
    cluster = dg.Cluster.uniform(3)
    assert (cluster.n_devices, cluster.n_channels, cluster.total_slots) == (3, 6, 3)
    assert not cluster.enforce_memory
    device = cluster.devices[0]
    assert (device.flops, device.streams, device.launch_overhead) == ({"float32": 1.0}, 1, 0.0)
    assert device.memory == math.inf
    route = cluster.route(0, 2)
    assert (route.latency, route.bandwidth, route.n_hops) == (0.0, 1.0, 1)
    assert dg.Cluster.preset("uniform", n=3) == dg.Cluster.preset("uniform(3)") == cluster
    assert dg.Cluster.uniform(np.int64(3)) == cluster


def test_ring_and_mesh_are_linked_to_neighbours():
    ring, mesh = dg.Cluster.ring(6), dg.Cluster.mesh(6)
    for s in range(6):
        for t in set(range(6)) - {s}:
            assert ring.route(s, t).n_hops == min((t - s) % 6, (s - t) % 6)
            rows, columns = abs(s // 3 - t // 3), abs(s % 3 - t % 3)
            assert mesh.route(s, t).n_hops == rows + columns


@pytest.mark.parametrize("name", ["p100x4", "mixed", "v100x8", "uniform(3)", "ring(5)", "mesh(4)"])
def test_json_files_and_pickles_give_an_equal_cluster(name, tmp_path):
    cluster = dg.Cluster.preset(name)
    cluster.write(tmp_path / "cluster.json")
    for other in (
        dg.Cluster.from_json(cluster.to_json()),
        dg.Cluster.read(tmp_path / "cluster.json"),
        pickle.loads(pickle.dumps(cluster)),
        copy.copy(cluster),
        copy.deepcopy(cluster),
    ):
        assert other == cluster
        assert hash(other) == hash(cluster)
    assert cluster != dg.Cluster.uniform(2)
    assert cluster != name


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dg.Cluster.uniform(0), "0"),
        (lambda: dg.Cluster.uniform(-3), "-3"),
        (lambda: dg.Cluster.uniform(10**30), "n: expected a whole number"),
        (lambda: dg.Cluster.uniform(2.0), "n: expected a whole number, got 2.0"),
        (lambda: dg.Cluster.uniform(True), "n: expected a whole number, got True"),
        (lambda: dg.Cluster.uniform("2"), "n: expected a whole number, got '2'"),
        (lambda: dg.Cluster.preset("p100x5"), "p100x4"),
        (lambda: dg.Cluster.preset(4), "cluster: expected a str"),
        (lambda: dg.Cluster.preset("uniform", m=3), "'m'"),
        (lambda: dg.Cluster.preset("uniform", n=2.5), "2.5"),
        (lambda: dg.Cluster.preset("uniform", n=[2]), "n: expected a bool, int, float or str"),
        (lambda: dg.Cluster.preset("uniform(2)", n=2), "twice"),
        (lambda: dg.Cluster.preset("./p100x4.json"), "p100x4"),
        (lambda: dg.Cluster.uniform(2).route(0, 2), "target: .*from 0 to 1, got 2"),
        (lambda: dg.Cluster.uniform(2).route(1, 1), "both device 1"),
    ],
)
def test_what_is_wrong_with_a_cluster_is_told(make, message):
    with pytest.raises(dg.UsageError, match=message):
        make()


def test_damaged_cluster_files_are_refused(tmp_path):
    document = json.loads(dg.Cluster.preset("p100x4").to_json())
    document["surprise"] = 1
    with pytest.raises(dg.ParseError, match="surprise"):
        dg.Cluster.from_json(json.dumps(document))
    with pytest.raises(OSError, match=r"absent\.json"):
        dg.Cluster.read(tmp_path / "absent.json")


def test_analytical_seconds_follow_the_roofline():
    graph, cluster = dg.workload("ffnn", devices=4), dg.Cluster.preset("mixed")
    seconds = dg.CostModel.analytical().seconds(graph, cluster)
    assert seconds.shape == (graph.n_nodes, 4)
    moved = graph.bytes_read + graph.bytes_written
    for d, device in enumerate(cluster.devices):
        roofline = np.maximum(graph.flops / device.flops["float32"], moved / device.bandwidth)
        np.testing.assert_allclose(seconds[:, d], device.launch_overhead + roofline, rtol=1e-14)


def test_cost_models_are_values(diamond):
    models = [dg.CostModel.analytical(), dg.CostModel.raw()]
    for model in models:
        assert pickle.loads(pickle.dumps(model)) == model
        assert copy.deepcopy(model) == model
    assert models[0] != models[1]
    assert dg.CostModel.of(diamond) == dg.CostModel.raw()
    assert dg.CostModel.of(dg.workload("ffnn")).kind == "analytical"
    np.testing.assert_array_equal(
        dg.CostModel.raw().seconds(diamond, dg.Cluster.uniform(2)), [[1, 1], [2, 2], [3, 3], [4, 4]]
    )


def test_a_cost_model_that_cannot_price_a_graph_is_refused():
    graph = dg.Graph.from_costs(np.ones((2, 3)), [1, 1], [])
    with pytest.raises(dg.InvalidError, match="3"):
        dg.CostModel.raw().seconds(graph, dg.Cluster.uniform(2))
    with pytest.raises(dg.InvalidError, match="raw"):
        dg.CostModel.raw().seconds(dg.workload("ffnn"), dg.Cluster.uniform(2))
    with pytest.raises(OSError, match="absent"):
        dg.CostModel.measured("absent.json")
