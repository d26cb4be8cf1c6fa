"""The drift of an environment, which its tool has not applied, for the gates before the next promotion to it.

Gates that read `targetDrift` are answered from the status of the promotion that runs in their environment, because only
an agent reads the objects of its tool. It looks while such a gate waits: at each change of these objects, and every
minute for commits of others. A change at the path counts by its content, so a commit and its revert are no drift.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta

from kardinal.objects import JsonObject, Key, key_of, labels_of
from kardinal.objects.errors import KardinalError
from kardinal.objects.text import cut
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.api.bundle import SETTLED_PHASES, EnvironmentStatus
from kardinal.promotion.api.promotion_step import ENDED_STATES, TargetDrift
from kardinal.promotion.policy.drift import RENEWED_EVERY, TARGET_DRIFT
from kardinal.promotion.policy.matching import is_instance
from kardinal.runtime import Informer, Source, Watch
from kardinal.runtime.predicates import metadata_changed
from kardinal_agent.health import Applied
from kardinal_agent.remotes import Queued, Remote

__all__ = ["LOOK_AGAIN", "DriftDemand", "is_over", "noted_drift", "seen_drift"]

LOOK_AGAIN = timedelta(minutes=1)
"""The interval at which the branch is read while a gate waits."""

_BY_PLACE = "drift-place"
_BY_TEMPLATE = "drift-template"
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MESSAGE_LIMIT = 300


class DriftDemand:
    """The gates that read `targetDrift` and wait, by the environment that they stand before."""

    def __init__(self, *, steps: Informer, gates: Informer, bundles: Informer) -> None:
        self._steps = steps
        self._gates = gates
        self._bundles = bundles
        steps.index(_BY_PLACE, lambda step: [_place(step, step["spec"])] if _has_landed(step) else [])
        gates.index(_BY_PLACE, lambda gate: [_place(gate, origin)] if (origin := _origin(gate)) else [])
        gates.index(_BY_TEMPLATE, lambda gate: [_template(origin)] if (origin := _origin(gate)) else [])

    def sources(self) -> Sequence[Source]:
        """Return the changes of gates and templates after which an environment is looked at."""
        return (
            Watch(self._gates, map=self._landed_there, when=metadata_changed("uid", "generation")),
            Watch(self._gates, map=self._landed_behind, when=metadata_changed("uid", "generation")),
        )

    def asks(self, step: JsonObject) -> bool:
        """Return whether a gate before another promotion to the environment of a PromotionStep waits for an answer."""
        return any(map(self._waits, self._gates.by_index(_BY_PLACE, _place(step, step["spec"]))))

    def _waits(self, gate: JsonObject) -> bool:
        origin = gate["spec"]["origin"]
        template = self._gates.get(origin["namespace"], origin["name"])
        if template is None or TARGET_DRIFT not in template["spec"]["expression"]:
            return False
        bundle = self._bundles.get(gate["metadata"]["namespace"], origin["bundle"])
        status = (bundle or {}).get("status") or {}
        if bundle is None or status.get("phase") in SETTLED_PHASES:
            return False
        entry = (status.get("environments") or {}).get(origin["environment"])
        return not is_over(EnvironmentStatus.model_validate(entry) if entry else None)

    def _landed_there(self, gate: JsonObject) -> Iterable[Key]:
        origin = _origin(gate)
        return map(key_of, self._steps.by_index(_BY_PLACE, _place(gate, origin))) if origin else []

    def _landed_behind(self, template: JsonObject) -> Iterable[Key]:
        instances = self._gates.by_index(_BY_TEMPLATE, str(key_of(template)))
        return {key for gate in instances for key in self._landed_there(gate)}


async def seen_drift(
    applied: Applied | str, step: PromotionStep, remote: Callable[[], Awaitable[Remote]]
) -> tuple[bool | None, str]:
    """Return whether the branch has changes at the path that are not applied, None if unknown; and why."""
    if isinstance(applied, str):
        return None, applied
    if applied.out_of_sync:
        return True, f"{applied.title} {applied.out_of_sync}"
    branch = step.spec.target_branch
    path = step.spec.path
    try:
        repository = (await remote()).repository
        head = (await repository.head(branch)).commit
        wanted = await repository.inspect(head, lambda tree: tree.identify(path))
        for revision in applied.revisions:
            if not _COMMIT.fullmatch(revision) or not await repository.includes(branch, head, revision):
                return None, f"{applied.title} has applied a revision that is not on branch {branch}"
            if await repository.inspect(revision, lambda tree: tree.identify(path)) != wanted:
                return True, f"{applied.title} has not applied the newest changes of {path} on branch {branch}"
    except (KardinalError, TimeoutError) as error:
        return None, f"branch {branch} cannot be read: {str(error) or 'it takes too long'}"
    except Queued as queued:
        return None, f"branch {branch} is not read yet: {queued.message}"
    return False, f"{applied.title} has applied {path} of branch {branch}"


def noted_drift(seen: tuple[bool | None, str], before: TargetDrift | None, *, now: datetime) -> TargetDrift:
    """Return the drift for the status; that of `before` if it says the same and is not to be renewed."""
    unreconciled, message = seen
    message = cut(message, _MESSAGE_LIMIT)
    same = before is not None and (before.unreconciled, before.message) == (unreconciled, message)
    if before is not None and same and now - before.seen_at < RENEWED_EVERY:
        return before
    return TargetDrift(unreconciled=unreconciled, message=message, seen_at=now)


def is_over(entry: EnvironmentStatus | None) -> bool:
    """Return whether a promotion no longer depends on what is before it: it has landed, has ended or was superseded."""
    if entry is None:
        return False
    return entry.promoted_at is not None or entry.displaced_by is not None or entry.has_ended


def _has_landed(step: JsonObject) -> bool:
    status = step.get("status") or {}
    return status.get("state") in ENDED_STATES and "promotedAt" in status


def _origin(gate: JsonObject) -> JsonObject | None:
    """Return the origin of a gate instance; None for another gate."""
    return gate["spec"].get("origin") if is_instance(labels_of(gate)) else None


def _template(origin: JsonObject) -> str:
    return str(Key(origin["namespace"], origin["name"]))


def _place(obj: JsonObject, names: JsonObject) -> str:
    return f"{obj['metadata']['namespace']}/{names['pipeline']}/{names['environment']}"
