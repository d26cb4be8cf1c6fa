"""Parse DeletionOptions from the body of a request, or else from its query.

A body makes the query parameters mean nothing, as on the real server. A precondition that is present and empty is one
that nothing meets, so it is told apart from none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from kardinal_local.plane.documents import JSON_NAMES, JsonObject
from kardinal_local.plane.errors import Cause, StatusError
from kardinal_local.plane.statuses import bad_request, invalid_options

__all__ = ["FOREGROUND", "ORPHAN", "DeletionOptions", "dry_run_problems", "parse_deletion_options"]

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_POLICIES = {"Foreground": FOREGROUND, "Background": "", "Orphan": ORPHAN}
_TYPES: dict[str, tuple[type, str]] = {
    "gracePeriodSeconds": (int, "int64"),
    "orphanDependents": (bool, "bool"),
    "propagationPolicy": (str, "v1.DeletionPropagation"),
    "dryRun": (list, "[]string"),
    "preconditions": (dict, "v1.Preconditions"),
}


@dataclass(frozen=True, slots=True)
class DeletionOptions:
    """`policy` is the finalizer that the propagation policy stands for; None leaves those of the object alone.

    `uid` and `revision` are preconditions. `accepted`: asked in the old spelling not to orphan dependents, which is
    answered as something that is only on its way.
    """

    uid: str | None = None
    revision: str | None = None
    policy: str | None = None
    dry_run: bool = False
    accepted: bool = False


def parse_deletion_options(body: JsonObject, query: Mapping[str, list[str]]) -> DeletionOptions:
    """The options of a request; StatusError when they make no sense."""
    said = _checked_types(body) if body else _of_query(query)
    policy, orphan, dry_run = said.get("propagationPolicy"), said.get("orphanDependents"), said.get("dryRun") or []
    causes = []
    if policy is not None and orphan is not None:
        problem = f'Invalid value: "{policy}": orphanDependents and deletionPropagation cannot be both set'
        causes.append(Cause("FieldValueInvalid", "propagationPolicy", problem))
    elif policy is not None and policy not in _POLICIES:
        allowed = ", ".join(f'"{one}"' for one in (*_POLICIES, "nil"))
        problem = f'Unsupported value: "{policy}": supported values: {allowed}'
        causes.append(Cause("FieldValueNotSupported", "propagationPolicy", problem))
    if causes := [*causes, *dry_run_problems(dry_run)]:
        raise invalid_options("DeleteOptions", causes)
    if orphan is not None:
        policy = "Orphan" if orphan else "Background"
    preconditions = said.get("preconditions") or {}
    return DeletionOptions(
        uid=preconditions.get("uid"),
        revision=preconditions.get("resourceVersion"),
        policy=None if policy is None else _POLICIES[policy],
        dry_run=bool(dry_run),
        accepted=orphan is False,
    )


def dry_run_problems(values: list[str]) -> list[Cause]:
    """What is wrong with the stages of a rehearsal: there is one, `All`."""
    if values in ([], ["All"]):
        return []
    problem = f'Unsupported value: {orjson.dumps(values).decode()}: supported values: "All"'
    return [Cause("FieldValueNotSupported", "dryRun", problem)]


def _checked_types(body: JsonObject) -> JsonObject:
    kind, version = body.get("kind") or "DeleteOptions", body.get("apiVersion") or "v1"
    if kind != "DeleteOptions":
        raise bad_request(
            f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        )
    for key, (wanted, name) in _TYPES.items():
        value = body.get(key)
        if value is not None and type(value) is not wanted:
            found = JSON_NAMES[type(value)]
            raise bad_request(f"json: cannot unmarshal {found} into Go struct field DeleteOptions.{key} of type {name}")
    return body


def _of_query(query: Mapping[str, list[str]]) -> JsonObject:
    """The same from the parameters of a URL."""
    said: dict[str, Any] = {"dryRun": query.get("dryRun", [])}
    if policy := query.get("propagationPolicy", [""])[0]:
        said["propagationPolicy"] = policy
    if orphan := query.get("orphanDependents", [""])[0]:
        said["orphanDependents"] = orphan.lower() not in {"0", "f", "false"}
    if seconds := query.get("gracePeriodSeconds", [""])[0]:
        try:
            said["gracePeriodSeconds"] = int(seconds)
        except ValueError:
            raise StatusError(400, "BadRequest", f'strconv.ParseInt: parsing "{seconds}": invalid syntax') from None
    return said
