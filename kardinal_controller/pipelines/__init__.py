"""The Pipeline controllers.

validation      whether Bundles can be translated with a Pipeline: conditions Ready and SharedPath
sharing         Pipelines that write to the same directory
ignored         fields that have no effect here: condition Ignored
history         deletes finished Bundles beyond the history limit
other_changes   the answers of gates about changes without a Bundle
"""

from kardinal_controller.pipelines.history import HistoryReconciler
from kardinal_controller.pipelines.ignored import IgnoredReconciler
from kardinal_controller.pipelines.other_changes import OtherChangesReconciler
from kardinal_controller.pipelines.validation import ValidationReconciler

__all__ = ["HistoryReconciler", "IgnoredReconciler", "OtherChangesReconciler", "ValidationReconciler"]
