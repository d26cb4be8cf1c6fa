"""The Bundle reconciler: from a new Bundle to its Graph, and from the steps of the Graph to the status of the Bundle.

observation, progress, supersession     what is read, and what follows from it
status                                  the status to write
graphs                                  creates, extends and deletes Graphs
reconciler, watches                     the reconciler and its sources
"""

from kardinal_controller.bundles.graphs import GraphKeeper
from kardinal_controller.bundles.reconciler import BundleReconciler

__all__ = ["BundleReconciler", "GraphKeeper"]
