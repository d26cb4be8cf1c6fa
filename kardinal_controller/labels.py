"""What the labels of a gate make of it: a template, the instance of one Bundle, or a freeze (promotion.md)."""

from __future__ import annotations

from collections.abc import Mapping

from kardinal.api.names import LABEL_BUNDLE, LABEL_TYPE, TYPE_FREEZE
from kardinal.kube import JsonObject

__all__ = ["is_instance", "is_template", "labels_of"]


def labels_of(obj: JsonObject) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}


def is_instance(labels: Mapping[str, str]) -> bool:
    """Whether a gate with these labels belongs to one Bundle."""
    return LABEL_BUNDLE in labels


def is_template(labels: Mapping[str, str]) -> bool:
    """Whether Bundles get instances of a gate with these labels, or may ask it for permission to skip."""
    return not is_instance(labels) and labels.get(LABEL_TYPE) != TYPE_FREEZE
