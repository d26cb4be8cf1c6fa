"""The pure part of the Graph engine: objects in dependency order, held by conditions.

    template, texts, conditions       expressions in trees, texts and lists
    dialect, compile, node_order      from `spec.nodes` to a compiled graph
    identity, desired, drift          how applied objects are marked, built and compared
    walk, prune                       from what is observed to what has to be done
    status, revision                  what is written about a Graph

It applies templates, reads references and evaluates conditions for any kind it is given, and does no I/O.
"""

from kardinal.graph.compile import CompiledGraph, compile_graph
from kardinal.graph.errors import GraphError, Problem
from kardinal.graph.identity import FINALIZER, GRAPH_LABEL

__all__ = ["FINALIZER", "GRAPH_LABEL", "CompiledGraph", "GraphError", "Problem", "compile_graph"]
