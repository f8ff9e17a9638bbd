"""Graph: making, reading, files, NetworkX, and refusals."""

import copy
import gc
import json
import pickle
import re

import networkx as nx
import numpy as np
import pytest

import doppler_gym as dg
from conftest import draw_costs


def test_a_graph_of_costs_has_what_was_given(diamond):
    assert (diamond.name, diamond.n_nodes, diamond.n_edges) == ("diamond", 4, 4)
    assert (diamond.n_tensors, diamond.n_inputs) == (4, 0)
    assert diamond.names == ["a", "b", "c", "d"]
    assert diamond.kinds == ["x", "y", "y", "x"]
    np.testing.assert_array_equal(diamond.edges, [[0, 1], [0, 2], [1, 3], [2, 3]])
    np.testing.assert_array_equal(diamond.edge_outputs, [0, 0, 0, 0])
    np.testing.assert_array_equal(diamond.edge_bytes, [10, 10, 20, 30])
    np.testing.assert_array_equal(diamond.output_bytes, [10, 20, 30, 40])
    np.testing.assert_array_equal(diamond.raw_compute, [1, 2, 3, 4])
    np.testing.assert_array_equal(diamond.flops, [1, 2, 3, 4])
    np.testing.assert_array_equal(diamond.bytes_read, np.zeros(4))
    np.testing.assert_array_equal(diamond.bytes_written, np.zeros(4))
    np.testing.assert_array_equal(diamond.meta_ops, [-1] * 4)
    np.testing.assert_array_equal(diamond.levels, [0, 1, 1, 2])
    np.testing.assert_array_equal(diamond.topological_order, [0, 1, 2, 3])
    assert "diamond" in repr(diamond)


def test_an_edge_may_carry_a_tensor_of_its_own():
    graph = dg.Graph.from_costs(
        [[1, 2], [3, 4], [5, 6]], None, [[0, 1, 7.5], [0, 2, 0.25], [1, 2, 3]]
    )
    assert graph.n_tensors == 3
    np.testing.assert_array_equal(graph.edge_bytes, [7.5, 0.25, 3])
    np.testing.assert_array_equal(graph.edge_outputs, [0, 1, 0])
    np.testing.assert_array_equal(graph.raw_compute, [[1, 2], [3, 4], [5, 6]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ">f8", np.int16, np.uint64])
def test_costs_of_any_number_type_and_stride_are_read(dtype, diamond):
    wide = np.zeros((4, 3), dtype)
    wide[:, 1] = [1, 2, 3, 4]
    edges = np.asfortranarray(np.array([[0, 1], [0, 2], [1, 3], [2, 3]], np.uint8))
    graph = dg.Graph.from_costs(
        wide[:, 1],
        [10, 20, 30, 40],
        edges,
        names=diamond.names,
        kinds=diamond.kinds,
        name="diamond",
    )
    assert graph == diamond


def test_a_graph_without_edges_or_nodes_is_legal():
    assert dg.Graph.from_costs([1.0], [0.0], []).n_edges == 0
    assert dg.Graph.from_costs([1.0], None, np.empty((0, 3))).n_edges == 0
    assert dg.Graph.from_costs([], [], []).n_nodes == 0
    assert dg.Graph().n_nodes == 0


EDGE = [[0, 1]]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((["a"], [1], []), dg.UsageError, "compute: expected numbers"),
        (([1, None], [1, 1], []), dg.UsageError, "compute: expected numbers"),
        (([1j, 2], [1, 1], []), dg.UsageError, "compute: expected numbers.*complex128"),
        (([True, False], [1, 1], []), dg.UsageError, "compute: expected numbers.*bool"),
        (([[1, 2], [3]], [1, 1], []), dg.UsageError, "compute: expected numbers in a rectangle"),
        ((np.zeros((2, 2, 2)), [1, 1], []), dg.UsageError, r"compute: expected shape.*\(2, 2, 2\)"),
        ((1.0, [1], []), dg.UsageError, "compute: expected shape"),
        (([1, 1], [1, 1, 1], []), dg.UsageError, r"output: expected shape \(2,\).*\(3,\)"),
        (([1, 1], [1, 1], [[0.0, 1.0]]), dg.UsageError, r"edges: expected whole numbers.*astype"),
        (([1, 1], [1, 1], [[0, 1, 2]]), dg.UsageError, r"edges: expected shape \(n_edges, 2\)"),
        (([1, 1], None, [[0, 1]]), dg.UsageError, r"edges: expected shape \(n_edges, 3\)"),
        (([1, 1], [1, 1], [0, 1]), dg.UsageError, r"edges: expected shape \(n_edges, 2\)"),
        (([1, 1], [1, 1], [[0, 2**40]]), dg.InvalidError, r"edges\[0, 1\] is 1099511627776"),
        (([1, 1], [1, 1], [[0, 2**64]]), dg.UsageError, "edges: expected whole numbers"),
        (([1, 1], [1, 1], np.array([[0, 2**63]], np.uint64)), dg.UsageError, r"edges\[0, 1\]"),
        (([1, 1], [1, 1], [[-1, 1]]), dg.InvalidError, r"edges\[0, 0\] is -1"),
        (([1, 1], [1, 1], [[0, 7]]), dg.InvalidError, "7"),
        (([1, 1], None, [[7, 0, 1.0]]), dg.InvalidError, r"edges\[0, 0\] is 7"),
        (([1, 1], None, [[0.5, 1, 1]]), dg.InvalidError, r"edges\[0, 0\] is 0.5"),
        (([1, 1], None, [[np.nan, 1, 1]]), dg.InvalidError, r"edges\[0, 0\] is nan"),
        (([1, 1], None, [[0, 1, np.nan]]), dg.InvalidError, "nan"),
        (([np.nan, 1], [1, 1], EDGE), dg.InvalidError, "nan"),
        (([np.inf, 1], [1, 1], EDGE), dg.InvalidError, "inf"),
        (([-1, 1], [1, 1], EDGE), dg.InvalidError, "-1"),
        (([1, 1], [-2, 1], EDGE), dg.InvalidError, "-2"),
        (([1, 1], [1, 1], [[0, 1], [1, 0]]), dg.InvalidError, "cycle"),
        (([1, 1], [1, 1], [[0, 0]]), dg.InvalidError, "loop"),
        (([1, 1], [1, 1], [[0, 1], [0, 1]]), dg.InvalidError, "(?i)twice|repeat|same"),
    ],
)
def test_what_is_wrong_with_costs_is_told(arguments, error, message):
    with pytest.raises(error, match=message):
        dg.Graph.from_costs(*arguments)


def test_names_and_kinds_are_one_text_a_node():
    with pytest.raises(dg.UsageError, match="names: expected 1, one a node, got 2"):
        dg.Graph.from_costs([1], [1], [], names=["a", "b"])
    with pytest.raises(dg.UsageError, match=r"kinds\[1\]: expected a str, got 3"):
        dg.Graph.from_costs([1, 1], [1, 1], [], kinds=["a", 3])
    with pytest.raises(dg.UsageError, match="names: expected one str a node"):
        dg.Graph.from_costs([1, 1], [1, 1], [], names="ab")
    with pytest.raises(dg.InvalidError, match="name"):
        dg.Graph.from_costs([1], [1], [], names=[""])


def test_every_fault_is_listed_at_once():
    with pytest.raises(dg.InvalidError) as told:
        dg.Graph.from_costs([-1, np.nan, 1], [1, 1, -5], [[0, 0]])
    for part in ("-1", "nan", "-5", "loop"):
        assert part in str(told.value)


@pytest.mark.parametrize("seed", range(4))
def test_json_files_and_pickles_give_an_equal_graph(seed, tmp_path):
    rng = np.random.default_rng(seed)
    own, devices = bool(seed % 2), [None, 3][seed // 2]
    costs = draw_costs(rng, 30, own_tensors=own, n_devices=devices)
    graph = dg.Graph.from_costs(*costs)
    graph.write(tmp_path / "graph.json")
    for other in (
        dg.Graph.from_json(graph.to_json()),
        dg.Graph.read(tmp_path / "graph.json"),
        dg.Graph.read(str(tmp_path / "graph.json")),
        dg.Graph.read(bytes(tmp_path / "graph.json")),
        pickle.loads(pickle.dumps(graph)),
        copy.copy(graph),
        copy.deepcopy(graph),
        dg.Graph.from_networkx(graph.to_networkx()),
    ):
        assert other == graph
        assert hash(other) == hash(graph)
    assert graph != dg.Graph()
    assert graph != "graph"
    assert {graph: 1}[copy.deepcopy(graph)] == 1


def test_workload_graphs_survive_json_and_networkx():
    graph = dg.workload("llama-block", devices=2)
    assert graph.n_inputs > 0
    assert dg.Graph.from_json(graph.to_json()) == graph
    assert dg.Graph.from_networkx(graph.to_networkx()) == graph
    assert dg.Graph.from_networkx(graph.to_networkx(), name="mine").name == "mine"


def test_the_published_graphs_are_read_as_the_text_says(reference):
    path = reference("graphs/gdp_ffnn_192nodes.txt")
    lines = path.read_text().splitlines()
    sources, targets = ([int(x) for x in re.findall(r"\d+", line)] for line in lines[2:4])
    rows = [line.split(",") for line in lines[4:] if line.strip()]
    compute, output = ([float(row[column]) for row in rows] for column in (0, 1))
    graph = dg.Graph.read(path)
    same = dg.Graph.from_costs(
        compute, output, np.column_stack([sources, targets]), kinds=[r[2].strip() for r in rows]
    )
    for field in ("edges", "edge_bytes", "raw_compute", "flops", "kinds", "names"):
        np.testing.assert_array_equal(getattr(graph, field), getattr(same, field))


def test_graphs_are_written_in_other_formats(diamond, tmp_path):
    diamond.write(tmp_path / "graph.txt", format="text")
    again = dg.Graph.read(tmp_path / "graph.txt")
    np.testing.assert_array_equal(again.edges, diamond.edges)
    np.testing.assert_array_equal(again.raw_compute, diamond.raw_compute)
    diamond.write(tmp_path / "graph.dot", format="dot")
    assert "digraph" in (tmp_path / "graph.dot").read_text()
    for bad in ("msr", "yaml"):
        with pytest.raises(dg.UsageError, match=bad):
            diamond.write(tmp_path / "graph", format=bad)
    assert not (tmp_path / "graph").exists()


def test_files_that_cannot_be_read_or_written_are_os_errors(diamond, tmp_path):
    for path in (tmp_path / "absent.json", tmp_path):
        with pytest.raises(OSError, match=re.escape(str(path))) as told:
            dg.Graph.read(path)
        assert isinstance(told.value, dg.RunError)
    with pytest.raises(dg.RunError, match="absent"):
        diamond.write(tmp_path / "absent" / "graph.json")
    for bad in (3, None, "a\0b"):
        with pytest.raises(dg.UsageError, match="path: expected"):
            dg.Graph.read(bad)


def test_damaged_texts_are_parse_errors_with_a_place(tmp_path):
    with pytest.raises(dg.ParseError, match=r"text:1:\d+: "):
        dg.Graph.from_json('{"nodes": [')
    with pytest.raises(dg.UsageError, match="text: expected a str"):
        dg.Graph.from_json(b"{}")
    path = tmp_path / "damaged-\udcff.txt"
    path.write_text("nonsense")
    with pytest.raises(dg.ParseError, match=r"damaged-\\xff\.txt:1:1"):
        dg.Graph.read(path)


def test_arrays_outlive_their_graph_and_cannot_be_changed():
    graph = dg.Graph.from_costs(np.arange(1000.0), np.ones(1000), [])
    raw, order = graph.raw_compute, graph.topological_order
    del graph
    gc.collect()
    junk = [dg.Graph.from_costs(np.full(1000, 7.0), np.ones(1000), []) for _ in range(20)]
    np.testing.assert_array_equal(raw, np.arange(1000.0))
    np.testing.assert_array_equal(order, np.arange(1000))
    assert len(junk) == 20
    for array in (raw, order):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5


def test_fresh_arrays_do_not_change_the_graph(diamond):
    diamond.edges[:] = 3
    diamond.flops[:] = 9
    diamond.names.append("z")
    np.testing.assert_array_equal(diamond.edges[0], [0, 1])
    np.testing.assert_array_equal(diamond.flops, [1, 2, 3, 4])
    assert len(diamond.names) == 4


def test_levels_and_order_agree_with_networkx(rng):
    for _ in range(20):
        graph = dg.Graph.from_costs(*draw_costs(rng, 25))
        other = nx.DiGraph(graph.edges.tolist())
        other.add_nodes_from(range(graph.n_nodes))
        for level, nodes in enumerate(nx.topological_generations(other)):
            assert set(np.flatnonzero(graph.levels == level)) == set(nodes)
        expected = sorted(range(graph.n_nodes), key=lambda v: (graph.levels[v], v))
        assert graph.topological_order.tolist() == expected


def test_networkx_graphs_are_read_by_their_attributes():
    other = nx.DiGraph(name="own")
    other.add_node("a", flops=np.float32(2.0), output=8, kind="einsum", compute=np.int64(3))
    other.add_node(("b", 1), compute=4.0)
    other.add_node("c", compute=5.0)
    other.add_edge(("b", 1), "c", bytes=16)
    other.add_edge("a", ("b", 1))
    other.add_edge("a", "c")
    graph = dg.Graph.from_networkx(other)
    assert (graph.name, graph.names) == ("own", ["a", "('b', 1)", "c"])
    edges = sorted(zip(graph.edges.tolist(), graph.edge_bytes.tolist(), strict=True))
    assert edges == [([0, 1], 8.0), ([0, 2], 8.0), ([1, 2], 16.0)]
    np.testing.assert_array_equal(graph.raw_compute, [3, 4, 5])
    np.testing.assert_array_equal(graph.flops, [2, 0, 0])


def networkx_case(*, node=None, edge=None, other_node=None):
    graph = nx.DiGraph()
    graph.add_node("a", **({"output": 1.0} if node is None else node))
    graph.add_node("b", **(other_node or {}))
    graph.add_edge("a", "b", **(edge or {}))
    return graph


@pytest.mark.parametrize(
    ("graph", "error", "message"),
    [
        (nx.Graph([(0, 1)]), dg.UsageError, "DiGraph or MultiDiGraph, got Graph"),
        ({"a": ["b"]}, dg.UsageError, "got dict"),
        (networkx_case(node={}), dg.UsageError, "edge 'a' -> 'b' has no size"),
        (networkx_case(node={"flop": 1}), dg.UsageError, "unknown attribute 'flop'"),
        (networkx_case(node={"output": 1, "outputs": []}), dg.UsageError, "leave one out"),
        (networkx_case(node={"output": 1, "compute": 1}), dg.UsageError, "node 'b' has no 'comp"),
        (networkx_case(node={"output": 1, "flops": float("nan")}), dg.InvalidError, "NaN"),
        (networkx_case(node={"output": -1}), dg.InvalidError, "-1"),
        (networkx_case(node={"output": "big"}), dg.InvalidError, "bytes"),
        (networkx_case(node={"output": object()}), dg.UsageError, "is no number"),
        (networkx_case(edge={"output": 1}), dg.InvalidError, "output"),
    ],
)
def test_networkx_graphs_that_do_not_fit_are_refused(graph, error, message):
    with pytest.raises(error, match=message):
        dg.Graph.from_networkx(graph)


def test_a_foreign_state_is_refused():
    document = json.loads(dg.Graph().to_json())
    document["version"] = 99
    for state, error in [
        (("{}",), dg.ParseError),
        ((json.dumps(document),), dg.ParseError),
        ((1, 2), dg.UsageError),
        ((3,), dg.UsageError),
    ]:
        with pytest.raises(error):
            dg.Graph.__new__(dg.Graph).__setstate__(state)
