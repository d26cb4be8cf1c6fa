"""The Bundle controller: from a new Bundle to its Graph, and from the steps of the Graph to the status of the Bundle.

watches                    what wakes it
observation                what it reads
decide                     what it does next, as a function of what was read (the rules)
progress, supersession     parts of that decision
statuses, transitions      the status to write, and the Events and counters that go with a change of it
graphs                     creates, extends and deletes Graphs
reconciler                 carries out what was decided
"""

from kardinal_controller.bundles.graphs import GraphKeeper
from kardinal_controller.bundles.reconciler import BundleReconciler

__all__ = ["BundleReconciler", "GraphKeeper"]
