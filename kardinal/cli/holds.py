"""The holds of a Pipeline: PolicyGates that keep all Bundles but one from an environment after a rollback."""

from __future__ import annotations

from kardinal.api.names import LABEL_PIPELINE, LABEL_TYPE, TYPE_HOLD, hold_name, label_value
from kardinal.cli.errors import CommandError
from kardinal.cli.session import Session
from kardinal.kube import AlreadyExists, Conflict, NotFound, PatchType
from kardinal.objects import POLICY_GATE, JsonObject
from kardinal.policy.holds import is_hold

__all__ = ["find_hold", "holds_of", "put_hold"]

_WRITES = 5
"""Writes that are tried while others write to the same gate."""


async def find_hold(session: Session, pipeline: str, environment: str) -> JsonObject | None:
    """Return the hold on an environment, if there is one."""
    try:
        gate = await session.client.get(POLICY_GATE, hold_name(pipeline, environment), session.namespace)
    except NotFound:
        return None
    return gate if is_hold(gate, pipeline, environment) else None


async def holds_of(session: Session, pipeline: str) -> list[tuple[str, JsonObject]]:
    """Return the environments of a Pipeline that are held, with their holds."""
    labels = f"{LABEL_TYPE}={TYPE_HOLD},{LABEL_PIPELINE}={label_value(pipeline)}"
    found = await session.client.list(POLICY_GATE, session.namespace, labels=labels)
    return [
        (environment, gate)
        for gate in found.items
        for environment in gate["spec"].get("appliesTo", ())
        if gate["metadata"]["name"] == hold_name(pipeline, environment)
    ]


async def put_hold(session: Session, wanted: JsonObject, pipeline: str, environment: str) -> None:
    """Create a hold, or let the one that is there stand for another Bundle.

    It is changed and not made anew: between a deletion and a creation, what it holds would go on.
    """
    name = wanted["metadata"]["name"]
    for _ in range(_WRITES):
        try:
            await session.client.create(POLICY_GATE, wanted, field_manager="kardinal-cli")
        except AlreadyExists:
            pass
        else:
            return
        try:
            stored = await session.client.get(POLICY_GATE, name, session.namespace)
            if not is_hold(stored, pipeline, environment):
                raise CommandError(
                    f"PolicyGate {name} is in the place of the hold on {environment}, and is none",
                    remedy="Give it another name, or go without a hold: --no-hold",
                )
            body = {
                "metadata": {"resourceVersion": stored["metadata"]["resourceVersion"]},
                "spec": {field: wanted["spec"][field] for field in ("exceptBundle", "message")},
            }
            await session.client.patch(
                POLICY_GATE, name, session.namespace, body, kind=PatchType.MERGE, field_manager="kardinal-cli"
            )
        except (NotFound, Conflict):
            continue
        return
    raise CommandError(f"PolicyGate {name} was written to by others at the same time", remedy="Try again.")
