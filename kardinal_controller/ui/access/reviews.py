"""The questions to the API server: whose token it is, and what its user may list.

Rights are asked for at first for all namespaces at once, and only if that is refused for each namespace by itself.
Answers are at most 60 seconds old. A question that the API server does not answer in time is no permission.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any, Literal

from kardinal.clock import Clock
from kardinal.kube import Client, Forbidden, KubeError
from kardinal.objects import JsonObject, ResourceType
from kardinal.promotion.kinds import PIPELINE
from kardinal.runtime.logging import get_logger
from kardinal.runtime.rate import RateLimit
from kardinal.runtime.recent_answers import RecentAnswers
from kardinal.runtime.scrapes import ACCESS_REVIEW, TOKEN_REVIEW
from kardinal_controller.ui.access.refusal import Refusal
from kardinal_controller.ui.model import Viewer

__all__ = ["Person", "Reception", "Reviews", "Rights"]

LIFETIME = 60.0
"""The age in seconds up to which an answer is used."""
DEADLINE = 10.0
"""The time in seconds for one answer."""
RIGHTS = 32_768
"""The most rights in the cache: the kind and namespace of a viewer."""

_SELF_REVIEW = ResourceType("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False)
_SELF_ACCESS_REVIEW = ResourceType(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
_RIGHTS = (
    "give the controller `create` on tokenreviews.authentication.k8s.io and subjectaccessreviews.authorization.k8s.io, "
    "as deploy/ does"
)

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Person:
    """The user of a viewer, as the API server or a trusted proxy names them.

    `own`: it is the user of the API client itself, who needs no permission to ask for their rights.
    """

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), repr=False)
    own: bool = False

    @classmethod
    def of(cls, info: JsonObject, *, own: bool = False) -> Person:
        """Return the person of a `userInfo`."""
        extra = info.get("extra") or {}
        return cls(
            str(info.get("username") or ""),
            tuple(map(str, info.get("groups") or ())),
            str(info.get("uid") or ""),
            tuple(sorted((str(name), tuple(map(str, values))) for name, values in extra.items())),
            own,
        )

    def spec(self) -> JsonObject:
        """Return the fields that name the person in a SubjectAccessReview."""
        named: JsonObject = {"user": self.name, "groups": list(self.groups)}
        if self.uid:
            named["uid"] = self.uid
        if self.extra:
            named["extra"] = {name: list(values) for name, values in self.extra}
        return named


class Reviews:
    """Ask one API server. Errors of it become `Refusal` 503."""

    def __init__(self, client: Client, *, clock: Clock) -> None:
        self._client = client
        self._warnings = RateLimit(limit=1, window=3600.0, clock=clock)

    async def person_of(self, token: str) -> Person | None:
        """Return the user of a bearer token; None if it is not valid, or no longer."""
        status = await self._ask(TOKEN_REVIEW, {"token": token})
        user = status.get("user") or {}
        return Person.of(user) if status.get("authenticated") is True and user.get("username") else None

    async def own_person(self) -> Person:
        """Return the user of the client itself."""
        return Person.of((await self._ask(_SELF_REVIEW, None)).get("userInfo") or {}, own=True)

    async def may_list(self, person: Person, resource: ResourceType, namespace: str | None) -> bool:
        """Return whether a person may list a kind in a namespace, or in all if it is None."""
        return await self.may(person, "list", resource, namespace)

    async def may(
        self, person: Person, verb: str, resource: ResourceType, namespace: str | None, name: str | None = None
    ) -> bool:
        """Return whether a person has a right on a kind, or on the object `name`; a namespace of None is all."""
        attributes = {
            "group": resource.group,
            "version": resource.version,
            "resource": resource.plural,
            "verb": verb,
            **({"namespace": namespace} if namespace else {}),
            **({"name": name} if name else {}),
        }
        review, named = (_SELF_ACCESS_REVIEW, {}) if person.own else (ACCESS_REVIEW, person.spec())
        answer = await self._ask(review, {**named, "resourceAttributes": attributes})
        return answer.get("allowed") is True

    async def _ask(self, resource: ResourceType, spec: JsonObject | None) -> dict[str, Any]:
        """Return the status of a review."""
        body: JsonObject = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}}
        if spec is not None:
            body["spec"] = spec
        try:
            async with asyncio.timeout(DEADLINE):
                return (await self._client.create(resource, body)).get("status") or {}
        except (KubeError, TimeoutError) as error:
            if not self._warnings.admit(type(error).__name__):
                remedy = _RIGHTS if isinstance(error, Forbidden) else "it is asked again at the next request"
                _log.warning(f"a viewer of the page could not be reviewed: {remedy}", error=type(error).__name__)
        raise Refusal(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "the API server did not say what you may see",
            remedy="Try again; the log of the controller has the reason.",
            headers={"Retry-After": "5"},
        )


class Rights:
    """The rights to list kinds, of all viewers."""

    def __init__(self, reviews: Reviews, *, clock: Clock) -> None:
        self._reviews = reviews
        self._answers = RecentAnswers[bool](clock=clock, most=RIGHTS)

    async def stop(self) -> None:
        await self._answers.stop()

    async def may_list(self, person: Person, resource: ResourceType, namespace: str) -> bool:
        """Return whether a person may list a kind in a namespace."""
        return await self._allowed(person, resource, None) or await self._allowed(person, resource, namespace)

    async def visible(self, person: Person, namespaces: Iterable[str]) -> list[str]:
        """Return the namespaces in which a person may list Pipelines, sorted."""
        named = sorted(set(namespaces))
        if await self._allowed(person, PIPELINE, None):
            return named
        allowed = await asyncio.gather(*(self._allowed(person, PIPELINE, each) for each in named))
        return [each for each, may in zip(named, allowed, strict=True) if may]

    async def _allowed(self, person: Person, resource: ResourceType, namespace: str | None) -> bool:
        return await self._answers.get(
            (person, resource.group, resource.plural, namespace),
            lambda: self._reviews.may_list(person, resource, namespace),
            max_age=LIFETIME,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reception:
    """Makes the `Viewer` of a person: `namespaces` returns all that hold Pipelines, `version` is of the program."""

    rights: Rights
    namespaces: Callable[[], Iterable[str]]
    version: str

    async def viewer(self, person: Person, *, auth: Literal["token", "proxy", "kubeconfig"]) -> Viewer:
        """Return the viewer with the namespaces that they may see."""
        return Viewer(
            user=person.name,
            groups=list(person.groups),
            auth=auth,
            may_act=auth == "kubeconfig",
            reads_as_viewer=auth != "proxy",
            namespaces=await self.rights.visible(person, self.namespaces()),
            version=self.version,
        )

    async def problem(self, person: Person, viewer: Viewer) -> str:
        """Return why a stream of a viewer ends: their namespaces are others than they were. Otherwise empty."""
        now = await self.rights.visible(person, self.namespaces())
        return "" if now == viewer.namespaces else "the namespaces that you may see have changed"

    def lists(self, person: Person) -> Callable[[ResourceType, str], Awaitable[bool]]:
        """Return the function of a seat that says what its viewer may list."""
        return partial(self.rights.may_list, person)
