"""Warn of parts of a PolicyGate in a file that have no effect; the controller warns of them in a cluster.

The warnings are based on the files alone: they may have the Pipelines of the gate or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kardinal.promotion.api import Pipeline, PolicyGate
from kardinal.promotion.policy.evaluate import fault
from kardinal.promotion.policy.matching import is_template
from kardinal.promotion.policy.template_warnings import (
    gate_warnings,
    ignored_fields,
    label_mistakes,
    name_warnings,
    namespace_warnings,
)
from kardinal.promotion.translation.soakless import asks_for_soak, firsts_held, soak_warning

__all__ = ["warnings_of"]

_POLICY_NAMESPACES: Final = ("platform-policies",)
"""The default policy namespaces of the controller, which are assumed because a file does not name them."""


def warnings_of(gate: PolicyGate, pipelines: Sequence[Pipeline]) -> Iterator[tuple[str, str]]:
    """Yield the field and the message of each warning; `pipelines` are the Pipelines in the files.

    Yields nothing for an invalid expression, which is an error and no warning.
    """
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
    """Return whether a namespace may have a Pipeline.

    True if the gate or a Pipeline has no namespace, which is chosen by `kubectl apply`, and if there are no Pipelines.
    """
    namespaces = {pipeline.metadata.namespace for pipeline in pipelines}
    return not namespace or not namespaces or "" in namespaces or namespace in namespaces
