"""Holds: after a rollback, nothing else reaches the environment until a person lets it.

A hold is a PolicyGate of type `hold` that names its Pipeline by label and its environment in `appliesTo`. It holds by
being there: agents ask for it before every effect, so Bundles whose Graphs were made before are held as well, and
deleting it, by whatever means, lets everything go on. It lets one Bundle through, the rollback itself.
"""

from __future__ import annotations

from kardinal.api.names import LABEL_PIPELINE, LABEL_TYPE, TYPE_HOLD, hold_name, label_value
from kardinal.objects import POLICY_GATE, JsonObject, labels_of

__all__ = ["hold_gate", "is_hold", "why_held"]


def hold_gate(pipeline: str, environment: str, *, namespace: str, bundle: str, message: str) -> JsonObject:
    """Return the gate that keeps every Bundle but `bundle` from an environment."""
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
    """Return whether a gate of the name of a hold is one: `a-b` with `c` gives the same name as `a` with `b-c`."""
    labels = labels_of(gate)
    ours = (labels.get(LABEL_TYPE), labels.get(LABEL_PIPELINE)) == (TYPE_HOLD, label_value(pipeline))
    return ours and environment in gate["spec"].get("appliesTo", ())


def why_held(gate: JsonObject, pipeline: str, environment: str) -> str:
    """Return what a hold says of itself, with the command that ends it."""
    message = gate["spec"].get("message")
    return (
        f"held by a hold on {environment} (PolicyGate {gate['metadata']['name']})"
        + (f": {message}" if message else "")
        + f"; to end it: kardinal resume {pipeline} --env {environment}"
    )
