"""Neighborhood graphs: edges, Gaussian weights, Laplacians, and edges drawn at random.

A graph joins training rows that should get similar outputs. Its edges {i, j} are undirected, carry
a weight μ_ij > 0 and are counted once. What is penalized is the *energy* of the outputs,

    E_p(f) = Σ_{(i,j)∈E} μ_ij |f_i − f_j|^p,

which for p = 2 is the quadratic form fᵀLf of the Laplacian L = D − W, where W holds the weights and
D their sums over each row.

Two kinds of graphs answer the same questions. `Graph` holds a list of edges (k nearest neighbors,
all neighbors within a radius, or any weights that are given). `CompleteGraph` joins all pairs and
holds none of them: weights are computed when an edge is drawn. `NeighborGraph` says how either is
made of rows. `sample_edge` draws edges inside compiled loops.

Read in this order: `_edges` (graphs and energies), `_neighbors` (how they are made of rows),
`_laplacian`, `_draws` (edges at random), `_rules` (what estimators take).
"""

from s3vm_lib.graphs._draws import edge_sampler, sample_edge
from s3vm_lib.graphs._edges import CompleteGraph, Graph, power_slope
from s3vm_lib.graphs._laplacian import Laplacian, laplacian
from s3vm_lib.graphs._neighbors import (
    distinct_rows,
    graph_from_weights,
    knn_graph,
    on_rows,
    radius_graph,
)
from s3vm_lib.graphs._rules import (
    GRAPH_SHARE,
    NEIGHBORS,
    GraphLike,
    NeighborGraph,
    check_graph,
    graph_rule,
    joins_all,
    training_graph,
)

__all__ = [
    "CompleteGraph",
    "GRAPH_SHARE",
    "Graph",
    "GraphLike",
    "Laplacian",
    "NEIGHBORS",
    "NeighborGraph",
    "check_graph",
    "distinct_rows",
    "edge_sampler",
    "graph_from_weights",
    "graph_rule",
    "joins_all",
    "knn_graph",
    "laplacian",
    "on_rows",
    "power_slope",
    "radius_graph",
    "sample_edge",
    "training_graph",
]
