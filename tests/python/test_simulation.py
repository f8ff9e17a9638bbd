"""simulate, Simulator, Execution and Task against other implementations."""

import copy
import gc
import json
import math
import pickle
import threading

import numpy as np
import pytest

import doppler_gym as dg
from conftest import draw_costs
from second_simulation import simulate as second

OPTIONS = [
    {"network": "independent"},
    {"network": "channel"},
    {"network": "fair"},
    {"policy": "priority"},
    {"policy": "random", "noise": 0.1, "seed": 3},
    {"schedule": "bulk_synchronous"},
]


def test_golden_makespans_are_met(reference):
    for case in reference("golden/makespans.json"):
        graph = dg.Graph.from_costs(
            [v["compute"] for v in case["nodes"]],
            [v["output"] for v in case["nodes"]],
            np.array(case["edges"]),
        )
        cluster = dg.Cluster.uniform(case["num_devices"])
        simulator = dg.Simulator(graph, cluster, network="independent")
        assignments = np.array([c["assignment"] for c in case["cases"]])
        want = [c["makespan"] for c in case["cases"]]
        np.testing.assert_allclose(simulator.makespans(assignments), want, rtol=1e-12)


def test_the_example_of_the_literature_has_its_published_starts(reference):
    example = reference("literature/topcuoglu2002.json")
    graph = dg.Graph.from_costs(example["compute"], None, np.array(example["edges"], float))
    for policy in ("fifo", "priority"):
        run = dg.simulate(
            graph,
            dg.Cluster.uniform(3),
            example["HEFT"]["assignment"],
            network="independent",
            policy=policy,
        )
        assert run.makespan == 80
        np.testing.assert_array_equal(run.starts, example["HEFT"]["start"])
    best = dg.simulate(
        graph, dg.Cluster.uniform(3), example["optimum"]["assignment"], network="independent"
    )
    assert best.makespan == 73


@pytest.mark.parametrize("network", ["independent", "channel"])
@pytest.mark.parametrize("policy", ["fifo", "priority"])
@pytest.mark.parametrize("cluster", ["uniform(3)", "ring(4)", "p100x4"])
def test_a_second_implementation_gives_the_same_execution(network, policy, cluster, rng):
    cluster = dg.Cluster.preset(cluster)
    for round_ in range(12):
        own = bool(round_ % 2)
        compute, output, edges = draw_costs(
            rng, 24, own_tensors=own, n_devices=cluster.n_devices if round_ % 3 else None
        )
        graph = dg.Graph.from_costs(compute, output, edges)
        assignment = rng.integers(0, cluster.n_devices, 24)
        priorities = rng.integers(0, 4, 24).astype(float)
        seconds = compute if compute.ndim == 2 else np.repeat(compute[:, None], 8, axis=1)
        if own:
            # Tensors of a node in the order of its edges.
            order = sorted(range(len(edges)), key=lambda i: (edges[i, 0], i))
            tensors = [(int(edges[i, 0]), edges[i, 2]) for i in order]
            links = [(tensor, int(edges[i, 1])) for tensor, i in enumerate(order)]
        else:
            tensors = list(enumerate(output))
            links = [(int(p), int(r)) for p, r in edges]

        def key(ready, v, priorities=priorities):
            return (-priorities[v], ready, v) if policy == "priority" else (ready, v)

        starts, ends, ready, makespan = second(
            seconds.tolist(),
            tensors,
            links,
            assignment.tolist(),
            cluster,
            network=network,
            key=key,
        )
        run = dg.simulate(
            graph, cluster, assignment, network=network, policy=policy, priorities=priorities
        )
        np.testing.assert_allclose(run.starts, starts, rtol=1e-12)
        np.testing.assert_allclose(run.ends, ends, rtol=1e-12)
        np.testing.assert_allclose(run.ready, ready, rtol=1e-12)
        assert run.makespan == pytest.approx(makespan, rel=1e-12)


@pytest.mark.parametrize("options", OPTIONS)
def test_the_record_of_an_execution_agrees_with_itself(options, rng):
    compute, output, edges = draw_costs(rng, 40)
    graph, cluster = dg.Graph.from_costs(compute, output, edges), dg.Cluster.preset("p100x4")
    assignment = rng.integers(0, 4, 40)
    run = dg.simulate(graph, cluster, assignment, **options)
    np.testing.assert_array_equal(run.devices, assignment)
    assert run.makespan == run.ends.max()
    assert np.all(run.starts >= run.ready)
    for d in range(4):
        mine = assignment == d
        assert run.busy[d] == pytest.approx(np.sum((run.ends - run.starts)[mine]))
        order = np.lexsort((run.ends[mine], run.starts[mine]))
        assert np.all(run.ends[mine][order][:-1] <= run.starts[mine][order][1:] + 1e-12)
    remote = {(p, assignment[r]) for p, r in edges if assignment[p] != assignment[r]}
    local = {p for p, r in edges if assignment[p] == assignment[r]}
    transfers = run.transfers
    assert {(int(t["tensor"]), int(t["target"])) for t in transfers} == remote
    assert len(transfers) == len(remote)
    assert not transfers["of_input"].any()
    np.testing.assert_array_equal(transfers["source"], assignment[transfers["tensor"]])
    np.testing.assert_array_equal(transfers["bytes"], output[transfers["tensor"]])
    assert run.bytes_moved == pytest.approx(sum(output[p] for p, _ in remote))
    assert run.bytes_local == pytest.approx(sum(output[p] for p in local))
    assert np.all(transfers["requested"] <= transfers["start"])
    assert np.all(transfers["start"] <= transfers["end"])
    assert np.all(run.slots == 0)
    assert run.out_of_memory is None
    # What a node reads from elsewhere is there when it is ready.
    arrival = {(int(t["tensor"]), int(t["target"])): t["end"] for t in transfers}
    for p, r in edges:
        there = run.ends[p] if assignment[p] == assignment[r] else arrival[p, assignment[r]]
        assert there <= run.ready[r]


@pytest.mark.parametrize("options", OPTIONS)
def test_every_way_to_a_makespan_gives_the_same(options, rng):
    graph = dg.Graph.from_costs(*draw_costs(rng, 30))
    cluster = dg.Cluster.preset("mixed")
    simulator = dg.Simulator(graph, cluster, **options)
    task = dg.Task(graph, cluster, **options)
    assignments = rng.integers(0, 4, (300, 30))
    want = simulator.makespans(assignments)
    for threads in (2, 3, 0):
        np.testing.assert_array_equal(simulator.makespans(assignments, threads=threads), want)
    np.testing.assert_array_equal(task.simulator().makespans(assignments), want)
    for other in (copy.copy(simulator), copy.deepcopy(simulator), pickle.loads(pickle.dumps(task))):
        engine = other if isinstance(other, dg.Simulator) else other.simulator()
        np.testing.assert_array_equal(engine.makespans(assignments[:20]), want[:20])
    again = pickle.loads(pickle.dumps(simulator))
    np.testing.assert_array_equal(again.makespans(assignments[:20]), want[:20])
    for row, makespan in zip(assignments[:20], want, strict=False):
        assert simulator.makespan(row) == makespan
        assert simulator.run(row).makespan == makespan
        assert task.simulate(row).makespan == makespan
        assert dg.simulate(graph, cluster, row, **options).makespan == makespan


def test_assignments_of_any_whole_type_and_stride_are_read(rng):
    graph = dg.Graph.from_costs(*draw_costs(rng, 20))
    simulator = dg.Simulator(graph, dg.Cluster.uniform(3))
    rows = rng.integers(0, 3, (10, 20))
    want = simulator.makespans(rows)
    wide = np.zeros((20, 20), np.int64)
    wide[::2] = rows
    for same in (
        rows.tolist(),
        rows.astype(np.uint8),
        rows.astype(np.int32),
        rows.astype(">i4"),
        rows.astype(np.uint64),
        np.asfortranarray(rows),
        wide[::2],
        rows[:, ::-1][:, ::-1],
    ):
        np.testing.assert_array_equal(simulator.makespans(same), want)
    assert simulator.makespans(np.empty((0, 20), int)).shape == (0,)


def test_an_empty_graph_takes_no_time():
    simulator = dg.Simulator(dg.Graph(), dg.Cluster.uniform(2))
    assert simulator.makespan([]) == 0
    np.testing.assert_array_equal(simulator.makespans(np.empty((5, 0), int)), np.zeros(5))
    run = simulator.run([])
    assert (run.makespan, run.starts.shape, run.transfers.shape) == (0, (0,), (0,))


def test_one_node_changes_have_the_values_of_whole_runs(rng):
    graph = dg.Graph.from_costs(*draw_costs(rng, 30))
    simulator = dg.Simulator(graph, dg.Cluster.uniform(4), network="independent")
    with pytest.raises(dg.UsageError, match="set_base"):
        simulator.makespan_after_move(0, 1)
    base = rng.integers(0, 4, 30)
    assert simulator.set_base(base) == simulator.makespan(base)
    for step in range(60):
        node, device = int(rng.integers(30)), int(rng.integers(4))
        moved = base.copy()
        moved[node] = device
        assert simulator.makespan_after_move(node, device) == simulator.makespan(moved)
        if step % 5 == 0:
            base = moved
            assert simulator.accept_move(node, device) == simulator.makespan(base)
    with pytest.raises(dg.InvalidError, match="30"):
        simulator.makespan_after_move(30, 0)
    with pytest.raises(dg.UsageError, match="node: expected a whole number"):
        simulator.accept_move(-1, 0)


def test_noise_has_mean_one_and_follows_its_seed(diamond):
    simulator = dg.Simulator(diamond, dg.Cluster.uniform(1), noise=0.2)
    draws = np.array([simulator.makespan([0] * 4, seed=s) for s in range(20_000)])
    # The sum of independent log-normal durations c exp(s z - s^2 / 2).
    compute = np.array([1.0, 2.0, 3.0, 4.0])
    deviation = math.sqrt(math.expm1(0.04) * np.sum(compute**2))
    assert abs(draws.mean() - 10) < 5 * deviation / math.sqrt(len(draws))
    assert draws.std() == pytest.approx(deviation, rel=0.05)
    assert simulator.makespan([0] * 4, seed=2**64 - 1) == simulator.makespan(
        [0] * 4, seed=2**64 - 1
    )
    other = dg.Simulator(diamond, dg.Cluster.uniform(1), noise=0.2, seed=7)
    assert other.makespan([0] * 4) == draws[7]


def test_graph_inputs_may_lie_on_one_device():
    graph = dg.workload("chainmm", devices=2)
    cluster = dg.Cluster.preset("p100x4")
    everywhere = dg.simulate(graph, cluster, np.zeros(graph.n_nodes, int))
    apart = dg.simulate(
        graph, cluster, np.zeros(graph.n_nodes, int), input_devices=[1] * graph.n_inputs
    )
    assert everywhere.bytes_moved == 0
    assert len(apart.transfers) == graph.n_inputs
    assert apart.transfers["of_input"].all()
    assert set(apart.transfers["source"]) == {1}
    assert apart.makespan > everywhere.makespan


def small_memory():
    document = json.loads(dg.Cluster.preset("p100x4").to_json())
    for device in document["devices"]:
        device["memory"] = 1e6
    return dg.Cluster.from_json(json.dumps(document))


def test_memory_is_enforced_as_the_cluster_says_unless_told_otherwise():
    graph, cluster = dg.workload("chainmm"), small_memory()
    together = np.zeros(graph.n_nodes, int)
    run = dg.simulate(graph, cluster, together)
    assert run.makespan == math.inf
    assert run.out_of_memory.device == 0
    assert run.out_of_memory.available == 1e6
    assert run.out_of_memory.needed == run.peak_memory[0] > 1e6
    assert dg.simulate(graph, cluster, together, enforce_memory=False).makespan < math.inf
    assert dg.Task(graph, cluster).enforce_memory
    assert not dg.Task(graph, dg.Cluster.uniform(4)).enforce_memory
    assert dg.Task(graph, dg.Cluster.uniform(4), enforce_memory=True).enforce_memory
    assert dg.Simulator(graph, cluster).makespan(together) == math.inf


def test_executions_are_values(rng):
    graph = dg.Graph.from_costs(*draw_costs(rng, 30))
    run = dg.simulate(graph, dg.Cluster.uniform(3), rng.integers(0, 3, 30))
    for other in (copy.copy(run), copy.deepcopy(run), pickle.loads(pickle.dumps(run))):
        assert other == run
        np.testing.assert_array_equal(other.transfers, run.transfers)
    assert run != dg.simulate(graph, dg.Cluster.uniform(3), [0] * 30)
    memory = dg.simulate(dg.workload("chainmm"), small_memory(), [0] * 76)
    assert pickle.loads(pickle.dumps(memory)) == memory
    assert "makespan" in repr(run)


def test_arrays_outlive_their_execution_and_cannot_be_changed(rng):
    graph = dg.Graph.from_costs(*draw_costs(rng, 200))
    assignment = rng.integers(0, 3, 200)
    run = dg.simulate(graph, dg.Cluster.uniform(3), assignment)
    names = ("devices", "slots", "ready", "starts", "ends", "transfers", "busy", "peak_memory")
    views = {name: getattr(run, name) for name in names}
    copies = {name: view.copy() for name, view in views.items()}
    del run
    gc.collect()
    junk = [dg.simulate(graph, dg.Cluster.uniform(3), [0] * 200) for _ in range(50)]
    for name in names:
        np.testing.assert_array_equal(views[name], copies[name])
        with pytest.raises(ValueError, match="read-only"):
            views[name][0] = views[name][1]
    assert len(junk) == 50


def test_threads_may_share_a_simulator(rng):
    graph = dg.Graph.from_costs(*draw_costs(rng, 40))
    simulator = dg.Simulator(graph, dg.Cluster.uniform(4))
    rows = rng.integers(0, 4, (500, 40))
    want = simulator.makespans(rows)
    results = [None] * 4

    def work(number):
        results[number] = [simulator.makespans(rows, threads=2) for _ in range(5)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        for values in result:
            np.testing.assert_array_equal(values, want)


@pytest.mark.parametrize(
    ("assignment", "error", "message"),
    [
        ([0, 0, 0], dg.UsageError, r"expected shape \(4,\).*got shape \(3,\)"),
        ([[0, 0, 0, 0]], dg.UsageError, r"expected shape \(4,\).*got shape \(1, 4\)"),
        (0, dg.UsageError, r"expected shape \(4,\)"),
        (np.zeros(4), dg.UsageError, "expected whole numbers.*float64"),
        (np.zeros(4, bool), dg.UsageError, "expected whole numbers.*bool"),
        (["a"] * 4, dg.UsageError, "expected whole numbers"),
        ([0, None, 0, 0], dg.UsageError, "expected whole numbers"),
        (None, dg.UsageError, "assignment: expected"),
        ([0, 1, 2, 0], dg.InvalidError, r"assignment\[2\] is device 2; .* devices 0 to 1"),
        ([0, -1, 0, 0], dg.InvalidError, r"assignment\[1\] is device -1"),
        ([0, 0, 0, 2**32], dg.InvalidError, r"assignment\[3\] is device 4294967296"),
        ([0, 0, 0, 2**100], dg.UsageError, "expected whole numbers"),
        (np.array([0, 0, 2**64 - 1, 0], np.uint64), dg.UsageError, r"assignment\[2\] is beyond"),
    ],
)
def test_assignments_that_do_not_fit_are_refused(diamond, assignment, error, message):
    cluster = dg.Cluster.uniform(2)
    simulator = dg.Simulator(diamond, cluster)
    for call in (simulator.run, simulator.makespan, simulator.set_base, simulator_of(diamond)):
        with pytest.raises(error, match=message):
            call(assignment)
    assert simulator.makespan([0, 1, 0, 1]) > 0


def simulator_of(graph):
    return lambda assignment: dg.simulate(graph, dg.Cluster.uniform(2), assignment)


def test_rows_that_do_not_fit_are_named(diamond):
    simulator = dg.Simulator(diamond, dg.Cluster.uniform(2))
    with pytest.raises(dg.InvalidError, match=r"assignments\[1, 3\] is device 9"):
        simulator.makespans([[0, 0, 0, 0], [0, 0, 0, 9]], threads=2)
    with pytest.raises(dg.UsageError, match=r"expected shape \(k, 4\)"):
        simulator.makespans([0, 0, 0, 0])
    with pytest.raises(dg.UsageError, match=r"expected shape \(k, 4\)"):
        simulator.makespans(np.zeros((2, 5), int))
    for threads in (-1, 1025, 1.0, True, "2"):
        with pytest.raises(dg.UsageError, match="threads: expected"):
            simulator.makespans([[0, 0, 0, 0]], threads=threads)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"network": "chanel"}, dg.UsageError, "unknown network 'chanel'.*channel"),
        ({"network": 3}, dg.UsageError, "network: expected a str"),
        ({"policy": "lifo"}, dg.UsageError, "lifo.*fifo"),
        ({"schedule": "bulk"}, dg.UsageError, "bulk_synchronous"),
        ({"netwrk": "fair"}, dg.UsageError, "unknown argument 'netwrk'; did you mean network"),
        ({"priorities": [1.0]}, dg.InvalidError, "1"),
        ({"priorities": [[1.0]]}, dg.UsageError, "priorities: expected shape"),
        ({"priorities": [1, 2, math.nan, 3]}, dg.InvalidError, "node 2 is not a number"),
        ({"input_devices": [0]}, dg.InvalidError, "input"),
        ({"input_devices": [[0]]}, dg.UsageError, "input_devices: expected shape"),
        ({"input_devices": [5]}, dg.InvalidError, r"input_devices\[0\] is device 5"),
        ({"noise": -0.1}, dg.InvalidError, "-0.1"),
        ({"noise": math.nan}, dg.InvalidError, "nan"),
        ({"noise": "0.1"}, dg.UsageError, "noise: expected a number, got '0.1'"),
        ({"noise": True}, dg.UsageError, "noise: expected a number"),
        ({"noise": 10**400}, dg.UsageError, "noise: expected a number"),
        ({"seed": -1}, dg.UsageError, r"seed: expected a whole number from 0 to 2\*\*64 - 1"),
        ({"seed": 2**64}, dg.UsageError, "seed"),
        ({"seed": 1.5}, dg.UsageError, "seed"),
        ({"seed": None}, dg.UsageError, "seed"),
        ({"enforce_memory": 1}, dg.UsageError, "enforce_memory: expected True or False"),
        ({"cost_model": "raw"}, dg.UsageError, "cost_model: expected a CostModel"),
    ],
)
def test_options_that_do_not_fit_are_refused(diamond, options, error, message):
    cluster = dg.Cluster.uniform(2)
    for make in (dg.Simulator, dg.Task):
        with pytest.raises(error, match=message):
            make(diamond, cluster, **options)
    with pytest.raises(error, match=message):
        dg.simulate(diamond, cluster, [0] * 4, **options)


def test_options_are_named_and_the_parts_have_their_types(diamond):
    cluster = dg.Cluster.uniform(2)
    for call in (
        lambda: dg.Simulator(diamond, cluster, "fair"),
        lambda: dg.Simulator(cluster, diamond),
        lambda: dg.Task(diamond),
        lambda: dg.simulate(diamond, 2, [0] * 4),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(dg.InvalidError, match="3"):
        dg.Task(dg.Graph.from_costs(np.ones((2, 3)), [1, 1], []), cluster)


def test_a_task_has_what_was_given_and_survives_pickle(diamond):
    priorities = [4.0, 3.0, 2.0, 1.0]
    task = dg.Task(
        diamond,
        dg.Cluster.uniform(2),
        name="mine",
        network="fair",
        policy="priority",
        schedule="bulk_synchronous",
        priorities=priorities,
        noise=0.25,
        seed=2**63,
        enforce_memory=True,
        cost_model=dg.CostModel.raw(),
    )
    assert (task.name, task.network, task.policy) == ("mine", "fair", "priority")
    assert (task.schedule, task.noise, task.seed) == ("bulk_synchronous", 0.25, 2**63)
    assert (task.graph, task.cluster) == (diamond, dg.Cluster.uniform(2))
    assert (task.cost_model.kind, task.split, task.enforce_memory) == ("raw", "none", True)
    np.testing.assert_array_equal(task.priorities, priorities)
    assert task.input_devices is None
    for other in (pickle.loads(pickle.dumps(task)), copy.copy(task), copy.deepcopy(task)):
        assert other == task
        assert hash(other) == hash(task)
    defaults = dg.Task(diamond, dg.Cluster.uniform(2))
    assert (defaults.network, defaults.policy, defaults.noise) == ("channel", "fifo", 0.0)
    assert (defaults.schedule, defaults.seed, defaults.name) == ("work_conserving", 0, "")
    assert defaults.priorities is None
    assert defaults != task
    # 10 s of compute on two slots; the longest path without transfers is 1 + 3 + 4.
    assert defaults.time_scale == 8.0
