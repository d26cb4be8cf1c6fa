"""The Pipeline reconciler: validates Pipelines and collects finished Bundles beyond the history limit."""

from kardinal_controller.pipelines.reconciler import PipelineReconciler

__all__ = ["PipelineReconciler"]
