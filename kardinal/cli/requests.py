"""Append a request to a Bundle and wait for the controller's answer."""

from __future__ import annotations

import asyncio
import getpass
import secrets
from typing import Literal

from kardinal.api.bundle import MAX_REQUESTS
from kardinal.cli.errors import CommandError
from kardinal.cli.output import say
from kardinal.cli.session import Session
from kardinal.kube import Conflict, PatchType
from kardinal.objects import BUNDLE, JsonObject

__all__ = ["ask"]

_WRITES = 5
"""Writes that are tried while others write to the same Bundle."""
_PATIENCE = 10.0
"""Seconds in which the controller answers, where there is one."""
_INTERVAL = 0.1


async def ask(
    session: Session,
    bundle: str,
    action: Literal["promote", "retry"],
    environment: str | None,
    *,
    must_be_answered: bool,
) -> None:
    """Make a request; one that is refused is a CommandError with the controller's reason.

    `must_be_answered`: one without an answer is an error, because the caller would wait for what follows from it.
    """
    identifier = f"{action}-{secrets.token_hex(8)}"
    wanted = {"id": identifier, "action": action, "by": getpass.getuser()}
    await _append(session, bundle, wanted | ({"environment": environment} if environment else {}))
    answer = await _answer(session, bundle, identifier)
    if answer is None:
        message = f"No controller has answered within {_PATIENCE:.0f} s: is one running?"
        remedy = (
            f"The request stays: kubectl get bundle {bundle} -o yaml. On this machine: kardinal local up --simulate"
        )
        if must_be_answered:
            raise CommandError(message, remedy=remedy)
        say(f"{message} {remedy}", err=True)
    elif answer["state"] == "Refused":
        raise CommandError(f"refused: {answer.get('message', '')}")


async def _append(session: Session, bundle: str, request: JsonObject) -> None:
    for _ in range(_WRITES):
        stored = await session.client.get(BUNDLE, bundle, session.namespace)
        known = (stored["spec"].get("intent") or {}).get("requests") or []
        if len(known) >= MAX_REQUESTS:
            raise CommandError(
                f"Bundle {bundle} has had {MAX_REQUESTS} requests and takes no more",
                remedy="Create a Bundle of the same artifacts.",
            )
        # With the revision that was read: a list is written whole, and none of another person's requests may go.
        body = {
            "metadata": {"resourceVersion": stored["metadata"]["resourceVersion"]},
            "spec": {"intent": {"requests": [*known, request]}},
        }
        try:
            await session.client.patch(
                BUNDLE, bundle, session.namespace, body, kind=PatchType.MERGE, field_manager="kardinal-cli"
            )
        except Conflict:
            continue
        return
    raise CommandError(f"Bundle {bundle} was written to by others at the same time", remedy="Try again.")


async def _answer(session: Session, bundle: str, identifier: str) -> JsonObject | None:
    try:
        async with asyncio.timeout(_PATIENCE):
            while True:
                stored = await session.client.get(BUNDLE, bundle, session.namespace)
                answers: list[JsonObject] = (stored.get("status") or {}).get("requests") or []
                for answer in answers:
                    if answer["id"] == identifier:
                        return answer
                await asyncio.sleep(_INTERVAL)
    except TimeoutError:
        return None
