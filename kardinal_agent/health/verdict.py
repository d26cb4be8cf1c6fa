"""The contract of a health adapter: what it looks at, what has to be proved, and its verdict.

One rule stands above all adapters: healthy on the old version must never verify. An adapter therefore looks first for
what was promoted and at the condition of things second, and it never assumes what it does not see.

An adapter is pure and keeps nothing: it says what is to be watched and judges what is there at one moment. How long a
failure must last to count, and who may read what objects say, is decided outside (`kardinal_agent.health.checks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from kardinal.api import PromotionStep
from kardinal.api.bundle import Chart
from kardinal.api.image import ImageReference
from kardinal.objects import JsonObject, Key, ResourceType, key_of

__all__ = [
    "Absent",
    "Adapter",
    "Objects",
    "Promotion",
    "State",
    "Verdict",
    "Watched",
    "absent",
    "failed",
    "healthy",
    "progressing",
]

State = Literal["progressing", "healthy", "failed"]


@dataclass(frozen=True, slots=True)
class Absent:
    """An object that the Pipeline names and that does not exist; `field` is the one that names it."""

    kind: ResourceType
    key: Key
    field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict on an environment at one moment.

    `failed` is said only of an observation that judges the promoted revision or template, at the current generation,
    with no operation running.
    """

    state: State
    message: str
    """One sentence in fixed words: the proof, or what is missing and who must act."""
    details: str = ""
    """The same sentence with what the objects say, for those who may read it."""
    reason: str = ""
    """Of a failure, in CamelCase, such as ProgressDeadlineExceeded."""
    since: datetime | None = None
    """Since when nothing has moved, as the objects tell."""
    negative: bool = False
    """Whether an environment that was Verified is no longer what it was because of this."""
    attempt: str = ""
    """The attempt of a tool that tries again by itself: equal for attempts at the same."""
    absent: Absent | None = None
    """The object without which nothing is judged."""

    @property
    def needs_person(self) -> bool:
        """Return whether it waits until a person acts, as its fixed words say (`a person must sync it`)."""
        return self.state == "progressing" and "a person must" in self.message


def healthy(message: str, *, details: str = "") -> Verdict:
    """Return the verdict on what is proved."""
    return Verdict(state="healthy", message=message, details=details)


def progressing(message: str, *, details: str = "", since: datetime | None = None, negative: bool = False) -> Verdict:
    """Return the verdict on what is not proved yet."""
    return Verdict(state="progressing", message=message, details=details, since=since, negative=negative)


def absent(kind: ResourceType, key: Key, *, field: str) -> Verdict:
    """Return the verdict on an object that is named and does not exist."""
    return Verdict(
        state="progressing", message=f"waits for {kind.kind} {key} to exist", absent=Absent(kind, key, field)
    )


def failed(reason: str, message: str, *, details: str = "", since: datetime | None = None) -> Verdict:
    """Return the verdict on what will not be proved unless something is done about it."""
    return Verdict(state="failed", message=message, details=details, reason=reason, since=since, negative=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """A promotion as far as it has to be proved."""

    images: Sequence[ImageReference]
    charts: Sequence[Chart]
    commit: str | None
    """The commit that landed; None before it is known."""
    repository: str
    """`git.url`."""
    branch: str
    path: str
    contains: Callable[[str], bool | None]
    """Whether a revision contains the commit; None is not known yet, and the answer leads to another judgement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """Objects that an adapter looks at: one by its name, those with some labels, or all of a namespace."""

    kind: ResourceType
    namespace: str
    name: str | None = None
    selector: Mapping[str, str] | None = field(default=None, hash=False)
    optional: bool = False
    """Whether there is a verdict without them, where they cannot be read."""
    names_only: bool = False
    """Whether nothing but their names is looked at, and kept."""

    @property
    def labels(self) -> Sequence[tuple[str, str]]:
        """Return the labels of the selector in an order of their own."""
        return sorted((self.selector or {}).items())


class Objects:
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


class Adapter(Protocol):
    """One way to prove an environment."""

    name: str
    confirm_seconds: float = 0.0
    """How long a healthy verdict must last to be believed, where a tool moves the parts of its answer one by one."""

    def watches(self, step: PromotionStep) -> Sequence[Watched]:
        """Return what the adapter looks at, as far as the PromotionStep tells."""
        ...

    def related(self, step: PromotionStep, promotion: Promotion, objects: Objects) -> Sequence[Watched]:
        """Return what it looks at besides, as the objects seen so far tell; by default nothing."""
        return ()

    def judge(self, step: PromotionStep, promotion: Promotion, objects: Objects) -> Verdict:
        """Return the verdict on the objects that are there, at once and without a request."""
        ...
