"""Holds: after a rollback, no other Bundle reaches the environment until a person allows it.

A hold is a PolicyGate of type `hold` that names its Pipeline by label and its environment in `appliesTo`. Its existence
is enough to hold: agents look for it before every effect, so it also holds Bundles whose Graphs are older than the
hold. Deleting it in any way lets promotions go on. It lets one Bundle through, the rollback itself. Holds are enforced,
as freezes are, in `kardinal_agent.execution.gates`.
"""

from __future__ import annotations

from kardinal.objects import JsonObject, labels_of
from kardinal.promotion.api.names import LABEL_PIPELINE, LABEL_TYPE, TYPE_HOLD, hold_name, label_value
from kardinal.promotion.kinds import POLICY_GATE

__all__ = ["hold_gate", "is_hold", "why_held"]


def hold_gate(pipeline: str, environment: str, *, namespace: str, bundle: str, message: str) -> JsonObject:
    """Return the gate that keeps every Bundle except `bundle` from an environment."""
    return {
        "apiVersion": POLICY_GATE.api_version,
        "kind": POLICY_GATE.kind,
        "metadata": {
            "name": hold_name(pipeline, environment),
            "namespace": namespace,
            "labels": {LABEL_PIPELINE: label_value(pipeline), LABEL_TYPE: TYPE_HOLD},
        },
        "spec": {"expression": "false", "appliesTo": [environment], "exceptBundle": bundle, "message": message},
    }


def is_hold(gate: JsonObject, pipeline: str, environment: str) -> bool:
    """Return whether `gate`, found by the name of a hold, is the hold of this Pipeline and environment.

    The name alone is ambiguous: Pipeline `a-b` with environment `c` and Pipeline `a` with `b-c` get the same name.
    """
    labels = labels_of(gate)
    ours = (labels.get(LABEL_TYPE), labels.get(LABEL_PIPELINE)) == (TYPE_HOLD, label_value(pipeline))
    return ours and environment in gate["spec"].get("appliesTo", ())


def why_held(gate: JsonObject, pipeline: str, environment: str) -> str:
    """Return why a hold keeps Bundles back, with the command that ends the hold."""
    message = gate["spec"].get("message")
    return (
        f"held by a hold on {environment} (PolicyGate {gate['metadata']['name']})"
        + (f": {message}" if message else "")
        + f"; to end it: kardinal resume {pipeline} --env {environment}"
    )
