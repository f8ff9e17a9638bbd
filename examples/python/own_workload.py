"""A workload of your own: a graph from arrays, or from NetworkX."""

import networkx as nx
import numpy as np

import doppler_gym as dg

# Eight layers of four operations; every operation reads the whole layer before it.
rng = np.random.default_rng(0)
edges = [[4 * i + a, 4 * i + 4 + b] for i in range(7) for a in range(4) for b in range(4)]
compute = rng.uniform(1, 2, 32)  # seconds
output = np.full(32, 0.1)  # bytes, at 1 byte/s on this cluster
graph = dg.Graph.from_costs(compute, output, edges, name="layers")

same = nx.DiGraph(name="layers")
same.add_nodes_from((v, {"compute": compute[v], "output": output[v]}) for v in range(32))
same.add_edges_from(edges)
assert dg.Graph.from_networkx(same).n_nodes == graph.n_nodes

task = dg.Task(graph, dg.Cluster.uniform(4), network="independent", name="layers")
for name in ("round-robin", "critical-path", "partner-list", "heft"):
    result = dg.agent(name).assign(task)
    print(f"{name:14} {result.makespan:.2f} s (at least {dg.lower_bound(task):.2f} s)")
