"""The Graph reconciler: the I/O of the engine in `kardinal.graph`.

controller     the sources and caches of the reconciler
reconciler     compile, walk, apply, write status, prune
interests      which Graphs a change of an object concerns
kinds          the kinds of the cluster, and the informers of their objects
accounts       the ServiceAccounts of Graphs, and what they may read
observed       objects as the caches, the account and the answers to applies show them
applier        applies and deletes objects
metrics        the counts of passes, compiles, applies, deletions and nodes
ownership      which Graphs are walked at all, and with whose rights
persons        the admission of Graphs that no object controls
"""

from kardinal_controller.graphs.controller import graph_controller
from kardinal_controller.graphs.ownership import GraphOwner
from kardinal_controller.graphs.persons import GraphsOfPersons

__all__ = ["GraphOwner", "GraphsOfPersons", "graph_controller"]
