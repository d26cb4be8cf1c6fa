"""The Pipeline controllers.

One validates Pipelines, one says which of their fields have no effect here, one deletes finished Bundles beyond the
history limit, and one asks gates about other changes.
"""

from kardinal_controller.pipelines.history import HistoryReconciler
from kardinal_controller.pipelines.ignored import IgnoredReconciler
from kardinal_controller.pipelines.other_changes import OtherChangesReconciler
from kardinal_controller.pipelines.validation import ValidationReconciler

__all__ = ["HistoryReconciler", "IgnoredReconciler", "OtherChangesReconciler", "ValidationReconciler"]
