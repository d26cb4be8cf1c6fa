"""The extensions that Kubernetes adds to the keywords of a schema, by name."""

from __future__ import annotations

from typing import Final

__all__ = [
    "EMBEDDED",
    "IDENTITY",
    "INT_OR_STRING",
    "LIST_KEYS",
    "LIST_TYPE",
    "MAP_TYPE",
    "PRESERVE",
    "VALIDATIONS",
]

EMBEDDED: Final = "x-kubernetes-embedded-resource"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
LIST_KEYS: Final = "x-kubernetes-list-map-keys"
LIST_TYPE: Final = "x-kubernetes-list-type"
MAP_TYPE: Final = "x-kubernetes-map-type"
PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
VALIDATIONS: Final = "x-kubernetes-validations"

IDENTITY: Final = frozenset({"apiVersion", "kind", "metadata"})
"""The fields of an object that belong to the server."""
