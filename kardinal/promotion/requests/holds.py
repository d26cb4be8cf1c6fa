"""Freeze a Pipeline and let it go on; read, write and end the holds that rollbacks leave.

Freeze and hold are PolicyGates that agents check before every effect. A hold lets one Bundle through, a freeze none.
"""

from __future__ import annotations

from contextlib import suppress

from kardinal.kube import AlreadyExists, Conflict, NotFound, PatchType
from kardinal.objects import JsonObject
from kardinal.promotion.api.names import (
    LABEL_PIPELINE,
    LABEL_TYPE,
    TYPE_FREEZE,
    freeze_name,
    hold_name,
    label_value,
)
from kardinal.promotion.kinds import POLICY_GATE
from kardinal.promotion.policy.hold_gate import is_hold
from kardinal.promotion.requests.requester import RequestDenied, Requester

__all__ = ["end_hold", "find_hold", "freeze", "put_hold", "unfreeze"]

_WRITES = 5
"""The maximum number of attempts to write a hold while other clients change it."""


async def freeze(requester: Requester, pipeline: str, reason: str | None) -> bool:
    """Hold every promotion of an existing Pipeline; returns False if it is paused already. Raises `NotThere`."""
    await requester.pipeline(pipeline)
    gate = {
        "apiVersion": POLICY_GATE.api_version,
        "kind": POLICY_GATE.kind,
        "metadata": {
            "name": freeze_name(pipeline),
            "namespace": requester.namespace,
            "labels": {LABEL_PIPELINE: label_value(pipeline), LABEL_TYPE: TYPE_FREEZE},
        },
        "spec": {"expression": "false", "message": reason or f"{pipeline} was paused by {requester.by}"},
    }
    try:
        await requester.client.create(POLICY_GATE, gate, field_manager=requester.field_manager)
    except AlreadyExists:
        return False
    return True


async def unfreeze(requester: Requester, pipeline: str) -> bool:
    """Let the promotions of a Pipeline go on; returns False if it is not paused."""
    try:
        await requester.client.delete(POLICY_GATE, freeze_name(pipeline), requester.namespace)
    except NotFound:
        return False
    return True


async def find_hold(requester: Requester, pipeline: str, environment: str) -> JsonObject | None:
    """Return the hold before an environment; None if there is none."""
    try:
        gate = await requester.client.get(POLICY_GATE, hold_name(pipeline, environment), requester.namespace)
    except NotFound:
        return None
    return gate if is_hold(gate, pipeline, environment) else None


async def end_hold(requester: Requester, pipeline: str, environment: str) -> bool:
    """Let Bundles get to an environment again; returns False if it is not held."""
    hold = await find_hold(requester, pipeline, environment)
    if hold is None:
        return False
    with suppress(NotFound):
        metadata = hold["metadata"]
        await requester.client.delete(POLICY_GATE, metadata["name"], requester.namespace, uid=metadata["uid"])
    return True


async def put_hold(requester: Requester, wanted: JsonObject, pipeline: str, environment: str) -> None:
    """Create the hold `wanted`, or change the existing hold so that it lets the Bundle of `wanted` through.

    The existing hold is patched, and not deleted and created again: in between, other Bundles would not be held. Raises
    `RequestDenied` if the name belongs to a PolicyGate that is not this hold, or if other clients keep changing it.
    """
    client = requester.client
    name = wanted["metadata"]["name"]
    for _ in range(_WRITES):
        try:
            await client.create(POLICY_GATE, wanted, field_manager=requester.field_manager)
        except AlreadyExists:
            pass
        else:
            return
        try:
            stored = await client.get(POLICY_GATE, name, requester.namespace)
            if not is_hold(stored, pipeline, environment):
                raise RequestDenied(
                    f"PolicyGate {name} is in the place of the hold on {environment}, and is none",
                    remedy="Give it another name, or go without a hold: --no-hold",
                )
            body = {
                "metadata": {"resourceVersion": stored["metadata"]["resourceVersion"]},
                "spec": {field: wanted["spec"][field] for field in ("exceptBundle", "message")},
            }
            await client.patch(
                POLICY_GATE,
                name,
                requester.namespace,
                body,
                kind=PatchType.MERGE,
                field_manager=requester.field_manager,
            )
        except (NotFound, Conflict):
            continue
        return
    raise RequestDenied(f"PolicyGate {name} was written to by others at the same time", remedy="Try again.")
