"""Warn of what a gate in a file says in vain, as far as the files tell; the controller does for those of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kardinal.api import Pipeline, PolicyGate
from kardinal.policy.evaluate import fault
from kardinal.policy.matching import is_template
from kardinal.policy.template_warnings import (
    gate_warnings,
    ignored_fields,
    label_mistakes,
    name_warnings,
    namespace_warnings,
)
from kardinal.translation.soakless import asks_for_soak, firsts_held, soak_warning

__all__ = ["warnings_of"]

_POLICY_NAMESPACES: Final = ("platform-policies",)
"""The policy namespaces of a controller that is given no others; a file does not name them."""


def warnings_of(gate: PolicyGate, pipelines: Sequence[Pipeline]) -> Iterator[tuple[str, str]]:
    """Yield the field and the message of what the controller would warn of; `pipelines` are those of the files."""
    if fault(gate.spec.expression):
        return
    yield from ignored_fields(gate)
    where = gate_warnings(
        gate,
        unknown=(),
        policy_namespaces=_POLICY_NAMESPACES,
        has_pipeline=_may_have_pipeline(gate.metadata.namespace, pipelines),
    )
    chosen = name_warnings(gate, policy_namespaces=_POLICY_NAMESPACES)
    spaces = namespace_warnings(gate, policy_namespaces=_POLICY_NAMESPACES)
    for warning in (*where, *chosen, *spaces):
        yield "metadata.name", warning
    soak = ""
    if asks_for_soak(gate) and is_template(gate.metadata.labels):
        soak = soak_warning(firsts_held(gate, pipelines, policy_namespaces=_POLICY_NAMESPACES))
    for warning in filter(None, (*label_mistakes(gate), soak)):
        yield "spec.expression", warning


def _may_have_pipeline(namespace: str, pipelines: Sequence[Pipeline]) -> bool:
    """Return whether a namespace may have one of the Pipelines; those that name none are applied anywhere."""
    namespaces = {pipeline.metadata.namespace for pipeline in pipelines}
    return not namespace or not namespaces or "" in namespaces or namespace in namespaces
