"""Graphs from and to NetworkX, by way of the package's own JSON (docs/graph-format.md)."""

from __future__ import annotations

import json
import numbers
from typing import Any

import networkx as nx

from ._core import Graph
from ._errors import InvalidError, ParseError, UsageError

_PLAIN = ("kind", "meta_op", "flops", "bytes_read", "bytes_written", "attributes")
_NODE = (*_PLAIN, "name", "outputs", "output", "compute")


def _plain(value: Any) -> Any:
    """What JSON holds for a value of NetworkX or numpy."""
    if isinstance(value, bool | str | int | float) or value is None:
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    raise UsageError(f"{value!r} ({type(value).__name__}) is no number, text or list of these")


def _node(key: Any, attributes: dict[str, Any]) -> dict[str, Any]:
    unknown = [name for name in attributes if name not in _NODE]
    if unknown:
        raise UsageError(
            f"node {key!r} has the unknown attribute {unknown[0]!r}; known: {', '.join(_NODE)}"
        )
    if "outputs" in attributes and "output" in attributes:
        raise UsageError(f"node {key!r} has both 'outputs' and 'output'; leave one out")
    node = {name: _plain(attributes[name]) for name in _PLAIN if name in attributes}
    node["name"] = _plain(attributes.get("name", str(key)))
    if "outputs" in attributes:
        node["outputs"] = _plain(attributes["outputs"])
    elif "output" in attributes:
        node["outputs"] = [{"bytes": _plain(attributes["output"])}]
    else:
        node["outputs"] = []
    return node


def _ordered_edges(graph: nx.DiGraph[Any]) -> list[tuple[Any, Any, dict[str, Any]]]:
    """Edges in the order of their `order` attributes if all have one, else in NetworkX's."""
    edges = list(graph.edges(data=True))
    if edges and all("order" in attributes for _, _, attributes in edges):
        edges.sort(key=lambda edge: edge[2]["order"])
    return edges


def from_networkx(graph: nx.DiGraph[Any], *, name: str | None = None) -> Graph:
    """See ``Graph.from_networkx``."""
    if not isinstance(graph, nx.Graph) or not graph.is_directed():
        raise UsageError(
            f"expected a networkx.DiGraph or MultiDiGraph, got {type(graph).__name__}; "
            "an edge leads from a producer to a reader"
        )
    number = {key: index for index, key in enumerate(graph.nodes)}
    nodes = [_node(key, attributes) for key, attributes in graph.nodes(data=True)]
    shares = {key for key, a in graph.nodes(data=True) if "outputs" in a or "output" in a}
    edges = []
    for producer, reader, attributes in _ordered_edges(graph):
        output = _plain(attributes.get("output", 0))
        if producer not in shares and "bytes" in attributes:
            output = len(nodes[number[producer]]["outputs"])
            nodes[number[producer]]["outputs"].append({"bytes": _plain(attributes["bytes"])})
        elif producer not in shares:
            raise UsageError(
                f"edge {producer!r} -> {reader!r} has no size; give the edge 'bytes', or its "
                "producer 'output' (bytes)"
            )
        edges.append([number[producer], number[reader], output])
    document: dict[str, Any] = {
        "format": "doppler-graph",
        "version": 1,
        "name": name if name is not None else str(graph.graph.get("name", "")),
        "nodes": nodes,
        "edges": edges,
        "inputs": _plain(graph.graph.get("inputs", [])),
    }
    costs = [a["compute"] for _, a in graph.nodes(data=True) if "compute" in a]
    if costs:
        if len(costs) != len(nodes):
            without = next(key for key, a in graph.nodes(data=True) if "compute" not in a)
            raise UsageError(f"node {without!r} has no 'compute'; give it to all nodes or to none")
        document["raw_compute"] = _plain(costs)
    try:
        text = json.dumps(document, allow_nan=False)
    except ValueError:
        raise InvalidError(
            "an attribute of the graph is NaN or infinite; costs and bytes are finite"
        ) from None
    try:
        return Graph.from_json(text)
    except ParseError as error:
        raise InvalidError(f"the graph of NetworkX, as JSON: {error}") from None


def to_networkx(graph: Graph) -> nx.MultiDiGraph[Any]:
    """See ``Graph.to_networkx``."""
    document = json.loads(graph.to_json())
    result: nx.MultiDiGraph[Any] = nx.MultiDiGraph(
        name=document.get("name", ""), inputs=document.get("inputs", [])
    )
    for index, node in enumerate(document["nodes"]):
        result.add_node(index, **{"outputs": [], **node})
    for index, cost in enumerate(document.get("raw_compute", [])):
        result.nodes[index]["compute"] = cost
    edge_bytes = graph.edge_bytes.tolist()
    for order, edge in enumerate(document["edges"]):
        producer, reader, output = (*edge, 0)[:3]
        result.add_edge(producer, reader, output=output, bytes=edge_bytes[order], order=order)
    return result
