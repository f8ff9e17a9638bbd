"""Workloads, clusters and tasks by name."""

import pickle

import numpy as np
import pytest

import doppler_gym as dg


@pytest.mark.parametrize(
    ("name", "devices", "n_nodes", "n_edges"),
    [
        ("chainmm", 4, 76, 80),
        ("ffnn", 4, 180, 208),
        ("llama-layer", 4, 229, 284),
        ("llama-layer", 8, 367, 470),
    ],
)
def test_workloads_have_the_published_sizes(name, devices, n_nodes, n_edges):
    graph = dg.workload(name, devices=devices)
    assert (graph.n_nodes, graph.n_edges) == (n_nodes, n_edges)


def test_parameters_may_be_keywords_or_part_of_the_name():
    graph = dg.workload("chainmm", shards=2, devices=1)
    assert graph == dg.workload("chainmm(shards=2)") == dg.workload("chainmm", devices=2)
    assert graph != dg.workload("chainmm")
    with pytest.raises(dg.UsageError, match="twice"):
        dg.workload("chainmm(shards=2)", shards=3)


def test_chainmm_has_the_operations_of_its_matrices():
    # (A B) C + D E: three products of n x n matrices, a sum; aggregation adds blocks.
    n = 10_000
    products = 3 * 2 * n**3
    flops = dg.workload("chainmm").flops.sum()
    assert products < flops < products * 1.001


def test_listings_describe_everything():
    assert {"chainmm", "ffnn", "llama-block", "llama-layer"} <= set(dg.workloads())
    assert {"p100x4", "v100x8", "mixed", "uniform"} <= set(dg.clusters())
    assert {"llama-layer@p100x4", "published/ffnn"} <= set(dg.tasks())
    for listing in (dg.workloads(), dg.clusters(), dg.tasks(), dg.agents()):
        assert list(listing) == sorted(listing)
        for name, description in listing.items():
            assert description.name == name
            assert description.summary
            assert description.source
            assert name in repr(description)
            for parameter in description.parameters:
                assert parameter.name
                assert parameter.summary
                assert isinstance(parameter.default, bool | int | float | str)
                assert parameter.name in repr(parameter)
    shape = {p.name: p for p in dg.workloads()["random-dag"].parameters}["shape"]
    assert shape.default in shape.choices
    assert {d.split for d in dg.tasks().values()} == {"none", "train", "test"}


def test_the_default_of_every_parameter_changes_nothing():
    for name, description in dg.clusters().items():
        defaults = {p.name: p.default for p in description.parameters}
        assert dg.Cluster.preset(name, **defaults) == dg.Cluster.preset(name)
    description = dg.workloads()["random-dag"]
    defaults = {p.name: p.default for p in description.parameters}
    assert dg.workload("random-dag", **defaults) == dg.workload("random-dag")


def test_a_task_is_its_workload_on_its_cluster():
    task = dg.task("llama-layer@p100x4")
    assert task.name == "llama-layer@p100x4"
    assert task.graph == dg.workload("llama-layer", devices=4)
    assert task.cluster == dg.Cluster.preset("p100x4")
    assert (task.network, task.policy, task.enforce_memory) == ("channel", "fifo", True)
    assert task == dg.Task(task.graph, task.cluster, name=task.name)
    assert pickle.loads(pickle.dumps(task)) == task
    assert dg.task("chainmm(shards=2)@uniform(3)").cluster == dg.Cluster.uniform(3)


def test_published_tasks_hold_the_published_graphs(reference):
    task = dg.task("published/chainmm")
    graph = dg.Graph.read(reference("graphs/gdp_chain_mm_112nodes.txt"))
    np.testing.assert_array_equal(task.graph.edges, graph.edges)
    np.testing.assert_array_equal(task.graph.raw_compute, graph.raw_compute)
    np.testing.assert_array_equal(task.graph.edge_bytes, graph.edge_bytes)
    assert (task.network, task.cost_model.kind) == ("independent", "raw")
    assert task.cluster == dg.Cluster.uniform(4)


def test_splits_survive_pickle():
    name = next(name for name, d in dg.tasks().items() if d.split == "test" and "mesh" in name)
    task = dg.task(name)
    assert task.split == "test"
    assert pickle.loads(pickle.dumps(task)).split == "test"


def test_a_task_may_name_a_cluster_file(tmp_path):
    path = tmp_path / "own.json"
    dg.Cluster.uniform(2).write(path)
    assert dg.task(f"chainmm@{path}").cluster == dg.Cluster.uniform(2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dg.workload("chainm"), "chainmm"),
        (lambda: dg.workload("chainmm("), r"chainmm\("),
        (lambda: dg.workload(3), "workload: expected a str, got 3"),
        (lambda: dg.workload("chainmm", shard=2), "did you mean shards"),
        (lambda: dg.workload("chainmm", shards=-1), "-1"),
        (lambda: dg.workload("chainmm", shards=2.0), "2.0"),
        (lambda: dg.workload("chainmm", shards=10**30), "shards: expected a whole number"),
        (lambda: dg.workload("chainmm", devices=0), "devices: expected a whole number from 1"),
        (lambda: dg.workload("random-dag", shape="round"), "layered"),
        (lambda: dg.task("llama-layr@p100x4"), "llama-layer"),
        (lambda: dg.task("llama-layer@p100x5"), "p100x4"),
        (lambda: dg.task("llama-layer"), "llama-layer"),
        (lambda: dg.task(""), "task"),
        (lambda: dg.task(None), "task: expected a str, got None"),
        (lambda: dg.task("\ud800"), "task: expected a str without lone surrogates"),
    ],
)
def test_names_that_do_not_exist_are_told_with_the_nearest(make, message):
    with pytest.raises(dg.UsageError, match=message):
        make()
