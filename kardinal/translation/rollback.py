"""Rollbacks: what ran in an environment, what a rollback may bring back, and whether one is what it says (pure).

What ran is read from the statuses of the Bundles, which only the controller writes. A Bundle that was Verified in an
environment is what a rollback of the next one goes back to; a rollback that was Verified takes back all that came after
the Bundle it restores. So one rollback after another goes further back, and never to a version that was rolled back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from kardinal.api import Bundle
from kardinal.api.bundle import (
    Artifacts,
    AttemptRecord,
    BundleIdentity,
    BundleSpec,
    EnvironmentStatus,
    Intent,
    Provenance,
    Rollback,
)
from kardinal.api.image import promoted_images
from kardinal.api.names import is_reserved_for_ci
from kardinal.api.new_bundle import NewBundle
from kardinal.objects import JsonObject, labels_of
from kardinal.policy.soak import HealthyTime, Soak, healthy_time, upstream_soak
from kardinal.translation.errors import Problem

__all__ = [
    "AUTOMATIC",
    "Landing",
    "Past",
    "new_rollback",
    "past_of",
    "rollback_problems",
    "same_artifacts",
    "soak_of_restored",
    "verified_at",
]

AUTOMATIC = "onHealthFailure"
"""The source of a rollback that follows from a failure by itself."""

_FIELD = "spec.intent.rollback"


@dataclass(frozen=True, slots=True)
class Landing:
    """A change that has landed in an environment: by which Bundle, and whether it was Verified."""

    bundle: JsonObject
    landed_at: datetime
    intent: int
    """The number of the intent that brought it: times have whole seconds."""
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
    """The Bundle that an environment runs, and the one it would go back to; None where there is none."""

    runs: Landing | None = None
    previous: Landing | None = None


def past_of(bundles: Iterable[JsonObject], environment: str) -> Past:
    """Return what ran in an environment, from the Bundles of its Pipeline as the API server has them."""
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
            # Its evidence is that of the Bundle that it has brought back.
            del verified[known + 1 :]
    runs = landings[-1]
    before = (each for each in reversed(verified) if _takes_back(each.bundle, runs.bundle))
    return Past(runs, next(before, None))


def new_rollback(
    restores: JsonObject, *, of: Landing, pipeline: str, environment: str, source: str, emergency: bool = False
) -> NewBundle:
    """Return the Bundle that brings back to an environment what `restores` was Verified with there.

    Provenance and the labels of users are those of the artifacts, and go with them.
    """
    metadata, spec = restores["metadata"], restores["spec"]
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
    """Return why a rollback is not what it says; `restored` is the Bundle of the name that it restores, if any.

    Its environments are compared with those of the Pipeline where its route is found.
    """
    return list(_problems(bundle, restored, pipeline))


def verified_at(entry: EnvironmentStatus | None) -> datetime | None:
    """Return when a Bundle was Verified last in an environment, in whichever attempt; None where it never was."""
    attempts: tuple[EnvironmentStatus | AttemptRecord, ...] = (entry, *(entry.attempts or ())) if entry else ()
    moments = [each.verified_at for each in attempts if each.state == "Verified" and each.verified_at is not None]
    return max(moments, default=None)


def soak_of_restored(
    environment: str, upstreams: Sequence[str], restores: BundleIdentity, bundles: Iterable[JsonObject]
) -> Soak:
    """Return the soak before an environment that the Bundle has which a rollback restores.

    It ended where another one of the Bundles of the Pipeline landed after it.
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
    """Return the healthy time of a restored Bundle in an environment; None where it never was Verified there."""
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
    subject, intent = f"Bundle/{bundle.metadata.name}", bundle.spec.intent
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
    spec, other = bundle.spec, restored.spec
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
    """Return the uid of the Bundle that one restores in an environment; None where it is no rollback there."""
    rollback = (bundle["spec"].get("intent") or {}).get("rollback")
    return rollback["restores"]["uid"] if rollback and environment in rollback["environments"] else None


def same_artifacts(bundle: JsonObject, other: JsonObject) -> bool:
    """Return whether two Bundles bring the same."""
    one, two = (BundleSpec.model_validate(each["spec"]) for each in (bundle, other))
    return (one.type, one.artifacts) == (two.type, two.artifacts)


def _takes_back(candidate: JsonObject, runs: JsonObject) -> bool:
    """Return whether a Bundle brings other versions of all that the one which runs has brought."""
    one, other = (BundleSpec.model_validate(each["spec"]) for each in (candidate, runs))
    same_things = one.type == other.type and _things(one.artifacts) >= _things(other.artifacts)
    return same_things and one.artifacts != other.artifacts


def _things(artifacts: Artifacts) -> set[tuple[str, ...]]:
    images = {("image", each.repository) for each in promoted_images(artifacts)}
    charts = {("chart", each.repository, each.name) for each in artifacts.charts}
    return images | charts | ({("commit", artifacts.git_commit.repository)} if artifacts.git_commit else set())
