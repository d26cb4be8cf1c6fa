"""Rollbacks: which Bundles ran in an environment, which one to restore, and whether a rollback is valid (pure).

The history of an environment is read from the statuses of its Bundles, which only the controller writes. The newest
Verified Bundle before the current one is the target of a rollback. A rollback that was Verified removes all Bundles
after the restored one from this history. So a second rollback goes further back, and never to a version that was
already rolled back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kardinal.objects import JsonObject, labels_of
from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.bundle import (
    Artifacts,
    AttemptRecord,
    BundleIdentity,
    BundleSpec,
    EnvironmentStatus,
    Intent,
    Provenance,
    Rollback,
)
from kardinal.promotion.api.image import promoted_images
from kardinal.promotion.api.names import is_reserved_for_ci
from kardinal.promotion.api.new_bundle import NewBundle
from kardinal.promotion.policy.soak import HealthyTime, Soak, healthy_time, upstream_soak
from kardinal.promotion.translation.errors import Problem

__all__ = [
    "AUTOMATIC",
    "Landing",
    "Past",
    "new_rollback",
    "past_of",
    "rollback_problems",
    "same_artifacts",
    "soak_of",
    "soak_of_restored",
    "verified_at",
]

AUTOMATIC = "onHealthFailure"
"""The source of a rollback that kardinal makes itself after a failure of health."""

_FIELD = "spec.intent.rollback"


@dataclass(frozen=True, slots=True)
class Landing:
    """A change that has landed in an environment: its Bundle, and whether it was Verified there."""

    bundle: JsonObject
    landed_at: datetime
    intent: int
    """The number of the intent that caused it, to order landings within one second: times have whole seconds."""
    verified: bool
    commit: str | None = None

    @property
    def name(self) -> str:
        return str(self.bundle["metadata"]["name"])

    @property
    def uid(self) -> str:
        return str(self.bundle["metadata"]["uid"])


@dataclass(frozen=True, slots=True)
class Past:
    """The Bundle that an environment runs, and the Bundle to which it would go back; None if there is none."""

    runs: Landing | None = None
    previous: Landing | None = None


def past_of(bundles: Iterable[JsonObject], environment: str) -> Past:
    """Return the history of an environment, from all Bundles of its Pipeline as read from the API server."""
    landings = sorted(
        (each for bundle in bundles for each in _landings(bundle, environment)),
        key=lambda each: (each.landed_at, each.intent),
    )
    if not landings:
        return Past()
    verified: list[Landing] = []
    for landing in landings:
        if not landing.verified:
            continue
        restored = _restored(landing.bundle, environment)
        known = next((index for index, each in enumerate(verified) if each.uid == restored), None)
        if known is None:
            verified.append(landing)
        else:
            # A rollback does not become an entry of its own; it is the restored Bundle that runs again.
            del verified[known + 1 :]
    runs = landings[-1]
    before = (each for each in reversed(verified) if _takes_back(each.bundle, runs.bundle))
    return Past(runs, next(before, None))


def new_rollback(
    restores: JsonObject, *, of: Landing, pipeline: str, environment: str, source: str, emergency: bool = False
) -> NewBundle:
    """Return the Bundle that restores the artifacts with which `restores` was Verified in an environment.

    Provenance and the users' labels belong to the artifacts, so they are copied as well.
    """
    metadata = restores["metadata"]
    spec = restores["spec"]
    provenance = spec.get("provenance")
    return NewBundle(
        pipeline=pipeline,
        namespace=metadata["namespace"],
        artifacts=Artifacts.model_validate(spec["artifacts"]),
        source=source,
        type=spec["type"],
        provenance=Provenance.model_validate(provenance) if provenance else None,
        intent=Intent(
            rollback=Rollback(
                environments=(environment,),
                of=BundleIdentity(name=of.name, uid=of.uid),
                restores=BundleIdentity(name=metadata["name"], uid=metadata["uid"]),
                emergency=emergency,
            )
        ),
        labels={key: value for key, value in labels_of(restores).items() if not is_reserved_for_ci(key)},
    )


def rollback_problems(bundle: Bundle, restored: Bundle | None, *, pipeline: str) -> Sequence[Problem]:
    """Return the problems of a rollback. `restored` is the Bundle whose name it restores, if that exists.

    The names of its environments are checked in `find_route`.
    """
    return list(_problems(bundle, restored, pipeline))


def verified_at(entry: EnvironmentStatus | None) -> datetime | None:
    """Return when a Bundle was last Verified in an environment, in any attempt; None if it never was."""
    attempts: tuple[EnvironmentStatus | AttemptRecord, ...] = (entry, *(entry.attempts or ())) if entry else ()
    moments = [each.verified_at for each in attempts if each.state == "Verified" and each.verified_at is not None]
    return max(moments, default=None)


def soak_of(
    bundle: Bundle,
    environment: str,
    upstreams: Sequence[str],
    *,
    steps: Mapping[str, PromotionStep],
    others: Callable[[], Iterable[JsonObject]],
) -> Soak:
    """Return the soak of a Bundle before `environment`, as gates count it.

    `steps` are its PromotionSteps by environment; where one is gone, the status of the Bundle has its healthy time.
    `others` returns the Bundles of the Pipeline; it is called for a rollback, whose soak is that of what it restores.
    """
    rollback = bundle.spec.intent.rollback
    if rollback is not None and upstreams:
        return soak_of_restored(environment, upstreams, rollback.restores, others())
    return upstream_soak(environment, {name: _healthy_time(bundle, name, steps.get(name)) for name in upstreams})


def _healthy_time(bundle: Bundle, environment: str, step: PromotionStep | None) -> HealthyTime | None:
    entry = bundle.status.environments.get(environment)
    replaced = entry.replaced_at if entry is not None else None
    if step is None:
        return healthy_time(entry, until=replaced) if entry is not None else None
    return healthy_time(step.status, created=step.metadata.creation_timestamp, until=replaced)


def soak_of_restored(
    environment: str, upstreams: Sequence[str], restores: BundleIdentity, bundles: Iterable[JsonObject]
) -> Soak:
    """Return the soak that the Bundle which a rollback restores has before `environment`.

    The healthy time in each upstream ended when another Bundle of the Pipeline landed there.
    """
    bundles = list(bundles)
    found = next((each for each in bundles if each["metadata"]["uid"] == restores.uid), None)
    if found is None:
        return Soak(unknown=f"Bundle {restores.name}, which it restores, does not exist any more")
    entries = Bundle.model_validate(found).status.environments
    return upstream_soak(environment, {name: _soaked(name, entries.get(name), bundles, restores) for name in upstreams})


def _soaked(
    environment: str, entry: EnvironmentStatus | None, bundles: Iterable[JsonObject], restores: BundleIdentity
) -> HealthyTime | None:
    """Return the healthy time of a restored Bundle in an environment; None if it was never Verified there."""
    since = verified_at(entry)
    if entry is None or since is None:
        return None
    moments = (entry.replaced_at, _next_landing(environment, since, bundles, restores.uid))
    until = min((moment for moment in moments if moment is not None), default=None)
    return healthy_time(entry, until=until) or HealthyTime(since=since, until=until)


def _next_landing(environment: str, after: datetime, bundles: Iterable[JsonObject], own: str) -> datetime | None:
    landings = (each for bundle in bundles for each in _landings(bundle, environment) if each.uid != own)
    return min((each.landed_at for each in landings if each.landed_at > after), default=None)


def _problems(bundle: Bundle, restored: Bundle | None, pipeline: str) -> Iterator[Problem]:
    subject = f"Bundle/{bundle.metadata.name}"
    intent = bundle.spec.intent
    if (rollback := intent.rollback) is None:
        return
    again = "make the rollback with kardinal rollback, which names one"
    for field, value in (("target", intent.target), ("skip", intent.skip)):
        if value:
            message = "a rollback goes to the environments that it names, and to no other"
            yield Problem(subject, f"spec.intent.{field}", "RollbackElsewhere", message, "leave it out")
    name = rollback.restores.name
    if restored is None or restored.metadata.uid != rollback.restores.uid:
        message = f"there is no Bundle {name} with uid {rollback.restores.uid} to restore"
        yield Problem(subject, f"{_FIELD}.restores", "NothingToRestore", message, again)
        return
    owner = restored.status.pipeline
    if owner != pipeline:
        message = f"Bundle {name} belongs to {f'Pipeline {owner}' if owner else 'no Pipeline'}, and not to {pipeline}"
        yield Problem(subject, f"{_FIELD}.restores", "NothingToRestore", message, again)
        return
    spec = bundle.spec
    other = restored.spec
    if (spec.type, spec.artifacts) != (other.type, other.artifacts):
        message = f"its type and artifacts are not those of Bundle {name}, which it says it restores"
        yield Problem(subject, "spec.artifacts", "OtherArtifacts", message, "use kardinal rollback, which copies them")
    for index, environment in enumerate(rollback.environments):
        if verified_at(restored.status.environments.get(environment)) is None:
            message = f"Bundle {name} was never Verified in {environment}"
            field = f"{_FIELD}.environments[{index}]"
            yield Problem(subject, field, "NeverVerified", message, again)


def _landings(bundle: JsonObject, environment: str) -> Iterator[Landing]:
    status = bundle.get("status") or {}
    entry = (status.get("environments") or {}).get(environment)
    if entry is None:
        return
    numbers = {each["id"]: each["sequence"] for each in status.get("requests") or ()}
    for each in (*entry.get("attempts", ()), entry):
        landed = each.get("promotedAt") or each.get("verifiedAt")
        if landed is not None:
            verified = each["state"] == "Verified" and "verifiedAt" in each
            number = numbers.get(each.get("request")) or status.get("sequence") or 0
            yield Landing(bundle, datetime.fromisoformat(landed), number, verified, each.get("commit"))


def _restored(bundle: JsonObject, environment: str) -> str | None:
    """Return the uid of the Bundle that `bundle` restores in an environment; None if it is no rollback there."""
    rollback = (bundle["spec"].get("intent") or {}).get("rollback")
    return rollback["restores"]["uid"] if rollback and environment in rollback["environments"] else None


def same_artifacts(bundle: JsonObject, other: JsonObject) -> bool:
    """Return whether two Bundles have the same type and the same artifacts."""
    one, two = (BundleSpec.model_validate(each["spec"]) for each in (bundle, other))
    return (one.type, one.artifacts) == (two.type, two.artifacts)


def _takes_back(candidate: JsonObject, runs: JsonObject) -> bool:
    """Return whether `candidate` has other versions of all artifacts of `runs`, so that it can take them back."""
    one, other = (BundleSpec.model_validate(each["spec"]) for each in (candidate, runs))
    same_things = one.type == other.type and _things(one.artifacts) >= _things(other.artifacts)
    return same_things and one.artifacts != other.artifacts


def _things(artifacts: Artifacts) -> set[tuple[str, ...]]:
    images = {("image", each.repository) for each in promoted_images(artifacts)}
    charts = {("chart", each.repository, each.name) for each in artifacts.charts}
    return images | charts | ({("commit", artifacts.git_commit.repository)} if artifacts.git_commit else set())
