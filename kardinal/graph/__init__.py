"""The pure part of the Graph engine: objects in dependency order, held by conditions.

    template, texts, conditions       expressions in trees, texts and lists
    dialect, compile                  from `spec.nodes` to a compiled graph
    identity, desired, drift          how applied objects are marked, built and compared
    walk, results, prune              from the observed objects to the applies and deletions that are due
    status, revision                  the status of a Graph, and its GraphRevisions
    drawing                           a Graph as Mermaid, DOT or JSON

It applies templates, reads references and evaluates conditions for any kind it is given, and does no I/O.
"""

from kardinal.graph.compile import CompiledGraph, compile_graph
from kardinal.graph.errors import GraphError, GraphProblem
from kardinal.graph.identity import FINALIZER, GRAPH_LABEL

__all__ = ["FINALIZER", "GRAPH_LABEL", "CompiledGraph", "GraphError", "GraphProblem", "compile_graph"]
