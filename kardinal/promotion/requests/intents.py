"""Ask for a promotion or another attempt: append a request to `intent.requests` of a Bundle, and await the answer."""

from __future__ import annotations

import asyncio
import secrets
from typing import Literal

from kardinal.kube import Conflict, NotFound, PatchType
from kardinal.objects import JsonObject
from kardinal.promotion.api.bundle import MAX_REQUESTS
from kardinal.promotion.api.names import LABEL_PIPELINE
from kardinal.promotion.kinds import BUNDLE
from kardinal.promotion.requests.holds import find_hold
from kardinal.promotion.requests.requester import RequestDenied, Requester, Unanswered
from kardinal.promotion.views.missing import unknown_environment

__all__ = ["ask", "find_promoted", "pipeline_of", "refuse_held", "stored_bundle"]

_WRITES = 5
"""The maximum number of attempts to write the request while other clients change the Bundle."""
_ANSWERED_WITHIN = 10.0
"""The time in seconds to wait for the controller's answer."""
_INTERVAL = 0.1


async def find_promoted(requester: Requester, pipeline: str, environment: str | None, name: str | None) -> str:
    """Return the name of the Bundle that is promoted to an environment, or everywhere if that is None.

    `name` defaults to the Bundle under way, else the newest. Raises `NotThere`, and `RequestDenied` if the environment
    is held: the request would be accepted, and the promotion would silently wait.
    """
    found = await requester.pipeline(pipeline)
    known = [entry.name for entry in found.spec.environments]
    if environment is not None and environment not in known:
        raise unknown_environment(pipeline, environment, known)
    bundle = (await requester.bundle(pipeline, name)).metadata.name
    if environment is not None:
        await refuse_held(requester, pipeline, environment, bundle)
    return bundle


async def refuse_held(requester: Requester, pipeline: str, environment: str, bundle: str) -> None:
    """Raise `RequestDenied` if a hold keeps the Bundle from the environment."""
    hold = await find_hold(requester, pipeline, environment)
    if hold is not None and hold["spec"].get("exceptBundle") != bundle:
        raise RequestDenied(
            f"{environment} is held: {hold['spec'].get('message') or 'since a rollback'}",
            remedy=f"Let Bundles get there again: kardinal resume {pipeline} --env {environment}",
        )


async def stored_bundle(requester: Requester, name: str) -> JsonObject:
    """Return a Bundle as it is stored. Raises `RequestDenied` if there is none."""
    try:
        return await requester.client.get(BUNDLE, name, requester.namespace)
    except NotFound as error:
        raise RequestDenied(
            f"no Bundle {name} in namespace {requester.namespace}", remedy="List them: kubectl get bundles"
        ) from error


def pipeline_of(bundle: JsonObject) -> str:
    """Return the name of the Pipeline of a Bundle: `status.pipeline`, else the label, which anyone can change."""
    pinned = (bundle.get("status") or {}).get("pipeline")
    return str(pinned or (bundle["metadata"].get("labels") or {}).get(LABEL_PIPELINE, ""))


async def ask(requester: Requester, bundle: str, action: Literal["promote", "retry"], environment: str | None) -> None:
    """Make a request, and wait up to 10 s for its answer.

    `environment` defaults to all environments of the Bundle's route if it is None. Raises `RequestDenied` with the
    controller's reason if the request is refused, and `Unanswered` without an answer.
    """
    identifier = f"{action}-{secrets.token_hex(8)}"
    wanted = {"id": identifier, "action": action, "by": requester.by}
    await _append(requester, bundle, wanted | ({"environment": environment} if environment else {}))
    answer = await _answer(requester, bundle, identifier)
    if answer is None:
        message = f"No controller has answered within {_ANSWERED_WITHIN:.0f} s: is one running?"
        remedy = (
            f"The request stays: kubectl get bundle {bundle} -o yaml. On this machine: kardinal local up --simulate"
        )
        raise Unanswered(message, remedy=remedy)
    if answer["state"] == "Refused":
        raise RequestDenied(f"refused: {answer.get('message', '')}")


async def _append(requester: Requester, bundle: str, request: JsonObject) -> None:
    for _ in range(_WRITES):
        stored = await requester.client.get(BUNDLE, bundle, requester.namespace)
        known = (stored["spec"].get("intent") or {}).get("requests") or []
        if len(known) >= MAX_REQUESTS:
            raise RequestDenied(
                f"Bundle {bundle} has had {MAX_REQUESTS} requests and takes no more",
                remedy="Create a Bundle of the same artifacts.",
            )
        # A merge patch replaces the whole list, so the resourceVersion is sent, which keeps requests of others.
        body = {
            "metadata": {"resourceVersion": stored["metadata"]["resourceVersion"]},
            "spec": {"intent": {"requests": [*known, request]}},
        }
        try:
            await requester.client.patch(
                BUNDLE,
                bundle,
                requester.namespace,
                body,
                kind=PatchType.MERGE,
                field_manager=requester.field_manager,
            )
        except Conflict:
            continue
        return
    raise RequestDenied(f"Bundle {bundle} was written to by others at the same time", remedy="Try again.")


async def _answer(requester: Requester, bundle: str, identifier: str) -> JsonObject | None:
    try:
        async with asyncio.timeout(_ANSWERED_WITHIN):
            while True:
                stored = await requester.client.get(BUNDLE, bundle, requester.namespace)
                answers: list[JsonObject] = (stored.get("status") or {}).get("requests") or []
                for answer in answers:
                    if answer["id"] == identifier:
                        return answer
                await asyncio.sleep(_INTERVAL)
    except TimeoutError:
        return None
