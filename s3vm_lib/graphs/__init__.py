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

from s3vm_lib.graphs._draws import edge_sampler as edge_sampler
from s3vm_lib.graphs._draws import sample_edge as sample_edge
from s3vm_lib.graphs._edges import CompleteGraph as CompleteGraph
from s3vm_lib.graphs._edges import Graph as Graph
from s3vm_lib.graphs._edges import power_slope as power_slope
from s3vm_lib.graphs._laplacian import Laplacian as Laplacian
from s3vm_lib.graphs._laplacian import laplacian as laplacian
from s3vm_lib.graphs._neighbors import distinct_rows as distinct_rows
from s3vm_lib.graphs._neighbors import graph_from_weights as graph_from_weights
from s3vm_lib.graphs._neighbors import knn_graph as knn_graph
from s3vm_lib.graphs._neighbors import on_rows as on_rows
from s3vm_lib.graphs._neighbors import radius_graph as radius_graph
from s3vm_lib.graphs._rules import GRAPH_SHARE as GRAPH_SHARE
from s3vm_lib.graphs._rules import NEIGHBORS as NEIGHBORS
from s3vm_lib.graphs._rules import GraphLike as GraphLike
from s3vm_lib.graphs._rules import NeighborGraph as NeighborGraph
from s3vm_lib.graphs._rules import check_graph as check_graph
from s3vm_lib.graphs._rules import graph_rule as graph_rule
from s3vm_lib.graphs._rules import joins_all as joins_all
from s3vm_lib.graphs._rules import training_graph as training_graph

__all__ = [name for name in dir() if not name.startswith("_")]
