"""The Bundle controller: from a new Bundle to its Graph, and from the steps of the Graph to the status of the Bundle.

observe        reads the caches and the effects of the present run, and returns the facts
rules          applies all rules to the facts, once, and returns the projection
decide         returns the decision: an action, and a phase with its reason and message (both in `decisions`)
status         builds the status from the projection and the decision
events         returns the Events, log lines and counters for a change of the status
reconciler     carries out the decision, and observes again

watches        the changes that bring a run
progress, failures, supersession, requests, notices
               one rule each, of those that `rules` and `status` apply
contenders, order
               Bundles of one Pipeline as the others see them, and from the oldest to the newest
graphs, ownership
               creates, extends and deletes Graphs; tells the engine which of them are walked
"""

from kardinal_controller.bundles.graph_owner import GraphsOfBundles, GraphsWithoutController
from kardinal_controller.bundles.graphs import GraphKeeper
from kardinal_controller.bundles.reconciler import BundleReconciler

__all__ = ["BundleReconciler", "GraphKeeper", "GraphsOfBundles", "GraphsWithoutController"]
