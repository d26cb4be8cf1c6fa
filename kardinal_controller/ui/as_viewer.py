"""Read what no informer holds, Events and YAML, with the viewer's own client.

Without one, as behind a proxy, the answer is the command to type.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import yaml

from kardinal.kube import Client, Forbidden, NotFound
from kardinal.objects import EVENT, GRAPH, JsonObject, Key
from kardinal.objects.text import cut
from kardinal.promotion.kinds import BUNDLE, PIPELINE, POLICY_GATE, PROMOTION_STEP
from kardinal_controller.ui.access.refusal import Refusal
from kardinal_controller.ui.access.seat import Seat
from kardinal_controller.ui.model import EventLine, EventList

__all__ = ["read_events", "read_yaml"]

EVENTS = 200
"""The most Events of an answer."""
NOTE = 1024
"""The most characters of the message of an Event."""

_KINDS = {each.kind.lower(): each for each in (PIPELINE, BUNDLE, GRAPH, PROMOTION_STEP, POLICY_GATE)}
_WITH_EVENTS = (BUNDLE, PROMOTION_STEP, POLICY_GATE, GRAPH)


async def read_events(seat: Seat, namespace: str, bundle: str) -> EventList:
    """Return the newest Events about a Bundle and the objects of its Graph. Raises `Refusal`."""
    command = f"kubectl events -n {namespace}"
    client = _client(seat, "Events are", command)
    try:
        found = await asyncio.gather(*(_about(client, namespace, kind.kind) for kind in _WITH_EVENTS))
    except Forbidden:
        raise _forbidden("list events", command) from None
    concerned = [event for events in found for event in events if _belongs(event, bundle)]
    lines = sorted(map(_line, concerned), key=lambda line: line.at.timestamp() if line.at else 0.0, reverse=True)
    return EventList(items=lines[:EVENTS])


async def read_yaml(seat: Seat, kind: str, key: Key) -> bytes:
    """Return an object as YAML. Raises `Refusal`, also for every kind that is not one of a promotion."""
    resource = _KINDS.get(kind)
    if resource is None:
        raise Refusal(
            HTTPStatus.NOT_FOUND,
            "the page shows no YAML of this kind",
            remedy=f"It shows: {', '.join(sorted(_KINDS))}.",
        )
    command = f"kubectl get {resource.plural}.{resource.group} {key.name} -n {key.namespace} -o yaml"
    client = _client(seat, "YAML is", command)
    try:
        found = await client.get(resource, key.name, key.namespace)
    except Forbidden:
        raise _forbidden(f"get {resource.plural}", command) from None
    except NotFound:
        raise Refusal(
            HTTPStatus.NOT_FOUND, f"no {resource.kind} {key.name} in namespace {key.namespace}", remedy="Go back."
        ) from None
    found["metadata"].pop("managedFields", None)
    return await asyncio.to_thread(_dump, found)


def _dump(obj: JsonObject) -> bytes:
    text: str = yaml.dump(obj, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
    return text.encode()


def _client(seat: Seat, subject: str, command: str) -> Client:
    if seat.client is None:
        raise Refusal(
            HTTPStatus.FORBIDDEN,
            f"{subject} read with your own rights, and the page has no token of yours",
            remedy=f"Type: {command}",
            command=command,
        )
    return seat.client


def _forbidden(what: str, command: str) -> Refusal:
    return Refusal(HTTPStatus.FORBIDDEN, f"you may not {what} there", remedy="Ask for the right.", command=command)


async def _about(client: Client, namespace: str, kind: str) -> list[JsonObject]:
    return (await client.list(EVENT, namespace, fields=f"regarding.kind={kind}")).items


def _belongs(event: JsonObject, bundle: str) -> bool:
    """Return whether an Event is about a Bundle, its Graph, or what the names of its children begin with."""
    name = (event.get("regarding") or {}).get("name") or ""
    return name == bundle or name.startswith(f"{bundle}-")


def _line(event: JsonObject) -> EventLine:
    about = event.get("regarding") or {}
    series = event.get("series") or {}
    at = series.get("lastObservedTime") or event.get("eventTime") or event["metadata"].get("creationTimestamp")
    return EventLine(
        type=cut(str(event.get("type") or ""), 64),
        reason=cut(str(event.get("reason") or ""), 128),
        message=cut(str(event.get("note") or ""), NOTE),
        about=f"{about.get('kind', '')} {about.get('name', '')}",
        count=max(int(series.get("count") or 1), 1),
        at=at,
    )
