"""The Pipeline controllers: one validates Pipelines, the other deletes finished Bundles beyond the history limit."""

from kardinal_controller.pipelines.history import HistoryReconciler
from kardinal_controller.pipelines.validation import ValidationReconciler

__all__ = ["HistoryReconciler", "ValidationReconciler"]
