"""Find the choices in a resource that this version does not execute, with the path of each field.

The resources describe more than this version implements. A health adapter, a delegate, a step or a modifier that was
silently ignored would end in an environment that is Verified without a proof, so every value that the table does not
list is refused by name, where its author looks. So is a value that is added to a model but not to the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kardinal.models.base import Model
from kardinal.promotion.api.health_adapters import BUILTIN_ADAPTERS, NO_DELEGATE

__all__ = ["FIELD_VALUES", "UnsupportedChoice", "unsupported_choices"]

FIELD_VALUES: Mapping[tuple[str, str], tuple[object, ...]] = {
    ("PipelineSpec", "promotion_policy"): ("supersede", "queue"),
    ("Git", "layout"): ("directory", "branch"),
    ("Git", "merge_method"): (None, "merge", "squash", "rebase"),
    ("Git", "status_on_others"): (False, True),
    ("Update", "strategy"): ("kustomize", "helm", "replace"),
    ("Update", "verify_effect"): ("fail", "warn", "off"),
    ("HealthFlux", "kind"): ("Kustomization", "HelmRelease"),
    ("HealthResource", "kind"): (None, "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"),
    ("ProgressiveDelivery", "delegate"): (
        NO_DELEGATE,
        *(each.name for each in BUILTIN_ADAPTERS.values() if each.delegate),
    ),
    ("Environment", "approval"): ("auto", "pr-review"),
    ("Environment", "on_health_failure"): ("none", "abort", "rollback", "rollback-all"),
    ("BundleSpec", "type"): ("image", "config", "mixed"),
    ("Intent", "graph"): (None, "manual"),
    ("IntentRequest", "action"): ("promote", "retry"),
    ("ConfigUpdate", "strategy"): ("cherry-pick", "overlay"),
}
"""(model, attribute) -> the values that this version executes; None stands for an absent field."""


@dataclass(frozen=True, slots=True)
class UnsupportedChoice:
    """A field with a value that is not executed.

    `supported` are the values that are; None stands for leaving it out.
    """

    field: str
    value: object
    supported: tuple[object, ...]

    @property
    def message(self) -> str:
        shown = f"{self.value!r} " if isinstance(self.value, str) else ""
        return f"{shown}is not available in this version"

    @property
    def remedy(self) -> str:
        return f"use {' or '.join(self._named)}" if self._named else "leave it out"

    @property
    def _named(self) -> list[str]:
        return [choice for choice in self.supported if isinstance(choice, str)]


def unsupported_choices(model: Model, *, field: str) -> Iterator[UnsupportedChoice]:
    """Walk a model and all models in it; `field` is the path of the model itself, such as `spec`."""
    for name, definition in type(model).model_fields.items():
        value = getattr(model, name)
        path = f"{field}.{definition.alias or name}".removeprefix(".")
        supported = FIELD_VALUES.get((type(model).__name__, name))
        if supported is not None and value not in supported:
            yield UnsupportedChoice(path, value, supported)
            continue
        for inner_path, inner in _models(value, path):
            yield from unsupported_choices(inner, field=inner_path)


def _models(value: Any, path: str) -> Iterator[tuple[str, Model]]:
    if isinstance(value, Model):
        yield path, value
    elif isinstance(value, tuple):
        yield from ((f"{path}[{index}]", item) for index, item in enumerate(value) if isinstance(item, Model))
