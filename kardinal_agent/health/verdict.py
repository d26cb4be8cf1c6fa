"""The contract of a health adapter: the objects that it watches, the promotion to prove, and its verdict.

The first rule of all adapters: an environment that is healthy on the old version is never Verified. An adapter
therefore first looks for the promoted version, then for its health, and treats missing information as no proof.

An adapter is pure and keeps no state: it names the objects to watch, and judges them as they are at one moment. How
long a failure must last to count, and who may read texts of objects, is decided in `kardinal_agent.health.checks`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from kardinal.objects import JsonObject, Key, ResourceType, key_of
from kardinal.objects.image_reference import ImageReference
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.api.bundle import Chart

__all__ = [
    "Adapter",
    "Applied",
    "MissingObject",
    "PromotionFacts",
    "State",
    "Verdict",
    "Watched",
    "WatchedObjects",
    "absent",
    "failed",
    "healthy",
    "progressing",
]

State = Literal["progressing", "healthy", "failed"]


@dataclass(frozen=True, slots=True)
class MissingObject:
    """A missing object that the Pipeline names in `field`, such as `health.argocd.name`."""

    kind: ResourceType
    key: Key
    field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict on an environment at one moment.

    It is `failed` only if the observation is of the promoted revision or template, at the current generation, and no
    operation is in progress.
    """

    state: State
    message: str
    """One sentence in fixed words: the proof, or the missing part and who must act."""
    details: str = ""
    """The same sentence with texts of the objects, for authors who may read them."""
    reason: str = ""
    """The reason of a failure in CamelCase, such as `ProgressDeadlineExceeded`."""
    since: datetime | None = None
    """The time of the last change of the objects, by their own times."""
    negative: bool = False
    """Whether the verdict also makes a Verified environment unhealthy; a wait, for example for a sync, does not."""
    attempt: str = ""
    """A text for the attempt of a tool that retries by itself; equal for attempts at the same revision."""
    absent: MissingObject | None = None
    """The missing object, if that is why no verdict is possible."""

    @property
    def needs_person(self) -> bool:
        """Return whether a person must act, by its fixed words (`a person must sync it`)."""
        return self.state == "progressing" and "a person must" in self.message


def healthy(message: str, *, details: str = "") -> Verdict:
    """Return the verdict on a proved environment."""
    return Verdict(state="healthy", message=message, details=details)


def progressing(message: str, *, details: str = "", since: datetime | None = None, negative: bool = False) -> Verdict:
    """Return the verdict on an environment that is not proved so far."""
    return Verdict(state="progressing", message=message, details=details, since=since, negative=negative)


def absent(kind: ResourceType, key: Key, *, field: str) -> Verdict:
    """Return the verdict on a missing object that the Pipeline names in `field`."""
    return Verdict(
        state="progressing", message=f"waits for {kind.kind} {key} to exist", absent=MissingObject(kind, key, field)
    )


def failed(reason: str, message: str, *, details: str = "", since: datetime | None = None) -> Verdict:
    """Return the verdict on an environment that will not be proved unless a person or a new commit changes it."""
    return Verdict(state="failed", message=message, details=details, reason=reason, since=since, negative=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionFacts:
    """The facts of a promotion that a health check has to prove: commit, images and charts."""

    images: Sequence[ImageReference]
    charts: Sequence[Chart]
    commit: str | None
    """The landed commit; None before it is known."""
    repository: str
    """`git.url`."""
    branch: str
    path: str
    contains: Callable[[str], bool | None]
    """Return whether a revision contains the commit; None if unknown so far, and the answer leads to another check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """Objects that an adapter watches: one by its name, those with some labels, or all of a namespace."""

    kind: ResourceType
    namespace: str
    name: str | None = None
    selector: Mapping[str, str] | None = field(default=None, hash=False)
    optional: bool = False
    """Whether a verdict is possible if they cannot be read."""
    names_only: bool = False
    """Whether only their names are read and kept."""

    @property
    def labels(self) -> Sequence[tuple[str, str]]:
        """Return the labels of the selector, sorted."""
        return sorted((self.selector or {}).items())


class WatchedObjects:
    """The watched objects at one moment, by kind."""

    __slots__ = ("_found",)

    def __init__(self, found: Mapping[ResourceType, Iterable[JsonObject]] | None = None) -> None:
        self._found = {kind: {key_of(obj): obj for obj in objects} for kind, objects in (found or {}).items()}

    def get(self, kind: ResourceType, namespace: str, name: str) -> JsonObject | None:
        return self._found.get(kind, {}).get(Key(namespace, name))

    def list(self, kind: ResourceType, namespace: str | None = None) -> Sequence[JsonObject]:
        """Return the objects of a namespace, or of all, in the order of their names."""
        found = self._found.get(kind, {}).items()
        return [obj for key, obj in sorted(found, key=lambda each: each[0]) if namespace in (None, key.namespace)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The revisions of a repository that a tool has applied, by its own report."""

    title: str
    """The object that reports it, such as `Application argocd/app`."""
    revisions: Sequence[str]
    """The applied revisions; several for an Application with several sources of the repository."""
    out_of_sync: str = ""
    """The difference from Git that the tool reports, in fixed words such as `is OutOfSync`; empty if there is none."""


class Adapter(Protocol):
    """One way to prove an environment."""

    name: str
    phases: Collection[str] = ()
    """The known phases of the tool's object. Only a delegate needs them."""
    confirm_seconds: float = 0.0
    """Seconds for which a healthy verdict must last, for a tool that writes the parts of its status one by one."""

    def watches(self, step: PromotionStep) -> Sequence[Watched]:
        """Return the objects that the PromotionStep names."""
        ...

    def related(self, step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects) -> Sequence[Watched]:
        """Return further objects that the ones read so far lead to. Defaults to none."""
        return ()

    def judge(self, step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects) -> Verdict:
        """Return the verdict on the given objects; makes no request and does not wait."""
        ...

    def applied(self, step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects) -> Applied | str:
        """Return what the tool has applied, or in fixed words why that is unknown. Defaults to unknown."""
        return f"health.type {self.name} does not tell which commit is applied"
