"""The Graph engine: objects in dependency order, held by conditions (graph.md).

    dialect, template, compile    what a Graph says
    walk, prune                   what follows from it and from what is observed: pure
    reconciler, writer, status    the edges: caches, API server, status

The engine knows no promotion: it applies templates, reads references and asks conditions, for any kind it is given.
"""

from kardinal_controller.graph.compile import CompiledGraph, compile_graph
from kardinal_controller.graph.controller import graph_controller
from kardinal_controller.graph.errors import GraphError, Problem
from kardinal_controller.graph.identity import FINALIZER, GRAPH_LABEL

__all__ = ["FINALIZER", "GRAPH_LABEL", "CompiledGraph", "GraphError", "Problem", "compile_graph", "graph_controller"]
