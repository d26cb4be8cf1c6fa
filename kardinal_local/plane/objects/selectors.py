"""Select objects for a list or a watch by labels, fields and namespace together.

Labels are matched on what the store keeps beside each object, without decoding it; so are names and namespaces.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kardinal_local.plane.objects.field_selectors import FieldSelector
from kardinal_local.plane.objects.label_selectors import LabelSelector
from kardinal_local.plane.storage import Entry

__all__ = ["Selector"]


@dataclass(frozen=True, slots=True)
class Selector:
    """The conditions of one request."""

    labels: LabelSelector = field(default_factory=LabelSelector)
    fields: FieldSelector = field(default_factory=FieldSelector)
    namespace: str = ""

    @property
    def everything(self) -> bool:
        return not self.labels.requirements and not self.fields.terms

    def matches(self, entry: Entry) -> bool:
        if self.namespace and entry.namespace != self.namespace:
            return False
        return self.labels.matches(entry.labels) and self.fields.matches(entry)
