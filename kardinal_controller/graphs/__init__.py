"""The Graph reconciler: the I/O of the engine in `kardinal.graph`.

controller     the sources and caches of the reconciler
reconciler     compile, walk, apply, write status, prune
interests      which Graphs a change of an object concerns
observed       objects as the caches and the answers to applies show them
applier        applies and deletes objects
ownership      which Graphs are walked at all, and with whose rights
"""

from kardinal_controller.graphs.controller import graph_controller
from kardinal_controller.graphs.ownership import GraphOwner

__all__ = ["GraphOwner", "graph_controller"]
