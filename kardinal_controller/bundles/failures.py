"""Follow-ups of a failure, as `onHealthFailure` of the environment says: rules on values (pure).

A failure counts here once the change has landed: before that nothing is to be taken back. `abort` stops the Bundle
where it has not landed; `rollback` brings the environment back; `rollback-all` does both, and brings back every
environment that received the Bundle. The artifacts that were rolled back are not tried there again by another Bundle
either, unless a person asks for that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kardinal.objects import JsonObject
from kardinal.promotion.api import Bundle
from kardinal.promotion.api.bundle import EnvironmentStatus
from kardinal.promotion.api.names import rollback_name
from kardinal.promotion.translation.rollback import AUTOMATIC, new_rollback, past_of, same_artifacts

__all__ = ["DueRollback", "due_rollback", "refused_artifacts", "stopped"]


_STOPPING = frozenset(["abort", "rollback-all"])
_ROLLING_BACK = frozenset(["rollback", "rollback-all"])


@dataclass(frozen=True, slots=True)
class DueRollback:
    """A rollback that is to be created for an environment."""

    environment: str
    manifest: JsonObject


def stopped(
    entries: Mapping[str, EnvironmentStatus],
    before: Mapping[str, EnvironmentStatus],
    *,
    on_failure: Mapping[str, str],
    refused: Mapping[str, str],
) -> dict[str, EnvironmentStatus]:
    """Return the entries of a Bundle, with `stopped` set in those that a failure stops.

    An environment stops the others at the moment when it fails: `before` has the entries that were written last. So an
    environment that a person retries afterwards goes on. `refused`: environment -> the Bundle that was rolled back
    there with the same artifacts.
    """
    found = dict(entries)
    aborting = [
        name
        for name, entry in entries.items()
        if on_failure.get(name) in _STOPPING and _has_failed(entry) and not _has_failed(before.get(name))
    ]
    for name, entry in entries.items():
        if not _may_land(entry):
            continue
        if aborting:
            found[name] = entry.model_copy(update={"stopped": f"stopped because {' and '.join(aborting)} failed"})
        elif name in refused and entry.request is None and entry.attempt is None:
            why = f"stopped because Bundle {refused[name]} was rolled back here with the same artifacts"
            found[name] = entry.model_copy(update={"stopped": why})
    return found


def due_rollback(
    bundle: Bundle,
    current: JsonObject,
    entries: Mapping[str, EnvironmentStatus],
    others: Iterable[JsonObject],
    *,
    on_failure: Mapping[str, str],
) -> DueRollback | None:
    """Return the rollback that follows from a failure and was not created yet; None if there is none.

    A rollback follows if the environment runs this Bundle and another Bundle was Verified there before. A rollback that
    fails is never followed by another rollback.
    """
    if bundle.spec.intent.rollback is not None:
        return None
    failed = [name for name, entry in entries.items() if on_failure.get(name) in _ROLLING_BACK and _has_failed(entry)]
    if any(on_failure[name] == "rollback-all" for name in failed):
        failed += [name for name, entry in entries.items() if entry.promoted_at is not None and name not in failed]
    due = [name for name in failed if entries[name].rolled_back_by is None and entries[name].displaced_by is None]
    if not due:
        return None
    told = {name: entry.to_json() for name, entry in entries.items()}
    bundles = [{**current, "status": {**current.get("status", {}), "environments": told}}, *others]
    for name in due:
        past = past_of(bundles, name)
        if past.runs is None or past.previous is None or past.runs.uid != bundle.metadata.uid:
            continue
        pipeline = bundle.status.pipeline or ""
        new = new_rollback(past.previous.bundle, of=past.runs, pipeline=pipeline, environment=name, source=AUTOMATIC)
        return DueRollback(name, new.manifest(rollback_name(bundle.metadata.name, name, bundle.metadata.uid)))
    return None


def refused_artifacts(bundle: Bundle, current: JsonObject, others: Iterable[JsonObject]) -> dict[str, str]:
    """Return the environments in which another Bundle with these artifacts was rolled back, with its name.

    Empty for a rollback: its artifacts were chosen by a person, or were Verified there.
    """
    if bundle.spec.intent.rollback is not None:
        return {}
    found: dict[str, str] = {}
    for other in others:
        entries = (other.get("status") or {}).get("environments") or {}
        refused = [name for name, entry in entries.items() if _is_refused(entry)]
        if refused and same_artifacts(other, current):
            found |= dict.fromkeys(refused, str(other["metadata"]["name"]))
    return found


def _is_refused(entry: JsonObject) -> bool:
    """Return whether a Bundle was rolled back in an environment, and no retry has landed there well since."""
    return "rolledBackBy" in entry and (entry["state"] == "Failed" or "attempt" not in entry)


def _has_failed(entry: EnvironmentStatus | None) -> bool:
    return entry is not None and entry.state == "Failed" and entry.promoted_at is not None


def _may_land(entry: EnvironmentStatus) -> bool:
    """Return whether a change may still land there."""
    ended = entry.has_ended or entry.promoted_at is not None
    return not ended and entry.displaced_by is None and entry.stopped is None
