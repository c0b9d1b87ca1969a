"""Neighborhood graphs: edges, Gaussian weights, Laplacians, and edges drawn at random.

A graph joins training rows that should get similar outputs. Its edges {i, j} are undirected, carry
a weight μ_ij > 0 and are counted once. What is penalized is the *energy* of the outputs,

    E_p(f) = Σ_{(i,j)∈E} μ_ij |f_i − f_j|^p,

which for p = 2 is the quadratic form fᵀLf of the Laplacian L = D − W, where W holds the weights and
D their sums over each row.

Two kinds of graphs answer the same questions. `Graph` holds a list of edges (k nearest neighbors,
all neighbors within a radius, or any weights that are given). `CompleteGraph` joins all pairs and
holds none of them: weights are computed when an edge is drawn. `NeighborGraph` makes either
of rows. `sample_edge` draws edges inside compiled loops.

Read in this order: `_edges` (graphs, energies, Laplacians, edges at random), `_rules` (how they are
made of rows, and what estimators take).
"""

from s3vm_lib.graphs._edges import (  # isort: skip
    CompleteGraph, Graph, Laplacian, edge_sampler, laplacian, power_slope, sample_edge,
)  # fmt: skip

from s3vm_lib.graphs._rules import (  # isort: skip
    GRAPH_SHARE, GraphLike, NeighborGraph, check_graph, distinct_rows, extend_graph,
    graph_from_weights, graph_rule, joins_all, knn_graph, radius_graph, training_graph, width_gamma,
)  # fmt: skip

__all__ = [
    "GRAPH_SHARE", "CompleteGraph", "Graph", "GraphLike", "Laplacian", "NeighborGraph",
    "check_graph", "distinct_rows", "edge_sampler", "extend_graph", "graph_from_weights",
    "graph_rule", "joins_all", "knn_graph", "laplacian", "power_slope", "radius_graph",
    "sample_edge", "training_graph", "width_gamma",
]  # fmt: skip
