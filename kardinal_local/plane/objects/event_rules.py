"""Validate Events: leniently in their old form, strictly in the new one.

Both groups of events are one kind of object, and a refusal names fields as the core group does, whichever group was
asked. An event with an `eventTime` is a new one; through events.k8s.io, only such events are made, and only their
series goes on afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.kinds import Kind
from kardinal_local.plane.metadata import invalid
from kardinal_local.plane.naming import qualified_name_problems

__all__ = ["event_problems"]

_FIXED = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "reason",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
)
_OLD_FIELDS = ("firstTimestamp", "lastTimestamp", "count", "source")
_LONGEST = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}
_ANYWHERE = ("default", "kube-system")


def event_problems(kind: Kind, document: JsonObject, old: JsonObject | None) -> list[Cause]:
    """Everything for which an event must be refused."""
    event = document if kind.view is None else kind.view.inward(document)
    controller = "reportingController" if kind.group else "reportingComponent"
    found = list(_new(event, controller) if event.get("eventTime") else _old(event))
    if not kind.group:
        return found
    if old is None:
        return [*found, *_series(event), *_made_through_the_new_group(event)]
    before = old if kind.view is None else kind.view.inward(old)
    if event.get("series") != before.get("series"):
        found += _series(event)
    for field in _FIXED:
        if event.get(field) != before.get(field):
            named = controller if field == "reportingComponent" else field
            found.append(invalid(named, event.get(field), "field is immutable"))
    return found


def _old(event: JsonObject) -> Iterator[Cause]:
    place, about = event["metadata"]["namespace"], event.get("involvedObject", {}).get("namespace", "")
    if place != (about or "default"):
        yield invalid("involvedObject.namespace", about, "does not match event.namespace")


def _new(event: JsonObject, controller: str) -> Iterator[Cause]:
    about = event.get("involvedObject", {}).get("namespace", "")
    if not about and event["metadata"]["namespace"] not in _ANYWHERE:
        yield invalid("involvedObject.namespace", about, "does not match event.namespace")
    reporter = event.get("reportingComponent", "")
    if not reporter:
        yield _required(controller)
    for problem in qualified_name_problems(reporter):
        yield invalid(controller, reporter, problem)
    for field, longest in _LONGEST.items():
        value = event.get(field, "")
        if not value and field != "message":
            yield _required(field)
        if len(value.encode()) > longest:
            yield invalid(field, "", f"can have at most {longest} characters")


def _made_through_the_new_group(event: JsonObject) -> Iterator[Cause]:
    if not event.get("eventTime"):
        yield _required("eventTime")
    if event.get("type") not in {"Normal", "Warning"}:
        yield invalid("type", "", f"has invalid value: {event.get('type', '')}")
    for field in _OLD_FIELDS:
        if event.get(field):
            yield invalid(field, "", "needs to be unset")


def _series(event: JsonObject) -> Iterator[Cause]:
    series = event.get("series")
    if series is None:
        return
    if series.get("count", 0) < 2:
        yield invalid("series.count", "", "should be at least 2")
    if not series.get("lastObservedTime"):
        yield _required("series.lastObservedTime")


def _required(field: str) -> Cause:
    return Cause("FieldValueRequired", field, "Required value")
