"""Find the resource of an apiVersion and a kind, such as `widgets` of `example.com/v1` and `Widget`.

    kinds = ServedKinds(client, dynamic, clock=clock, defined=wake)
    kinds.follow_definitions()
    resource = await kinds.find(("example.com/v1", "Widget"))

CustomResourceDefinitions are watched, so that a kind that is installed, changed or removed is known at once. Other
kinds, those of the API server itself and of aggregated ones, are asked for by group and version. The answer is
remembered for a minute, and forgotten when a definition of its group changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from kardinal.clock import Clock
from kardinal.kube import Client, Forbidden, NotFound
from kardinal.objects import CUSTOM_RESOURCE_DEFINITION, JsonObject, ResourceType
from kardinal.runtime.dynamic import DynamicInformers, Handle
from kardinal.runtime.informer import Event
from kardinal.runtime.recent_answers import RecentAnswers

__all__ = ["ANSWER_SECONDS", "ServedKinds", "group_kind"]

ANSWER_SECONDS: Final = 60.0
"""The age in seconds up to which the kinds of a group and version are used."""
ANSWERS: Final = 4096
READ_SECONDS: Final = 2.0
"""Seconds of real time to wait for the first list of definitions."""

_BY_KIND: Final = "kind"


def group_kind(kind: tuple[str, str]) -> str:
    """Return an apiVersion and a kind without the version, such as `Widget.example.com`."""
    api_version, name = kind
    return f"{name}.{api_version.rpartition('/')[0]}".removesuffix(".")


class ServedKinds:
    """The kinds of one API server.

    `defined` is called when the CustomResourceDefinition of a kind was installed, changed or removed, with its name as
    `group_kind` returns it.
    """

    def __init__(
        self,
        client: Client,
        dynamic: DynamicInformers,
        *,
        clock: Clock,
        defined: Callable[[str], None],
    ) -> None:
        self._client = client
        self._dynamic = dynamic
        self._defined = defined
        self._definitions: Handle | None = None
        self._answers = RecentAnswers[Mapping[tuple[str, str], ResourceType]](clock=clock, most=ANSWERS)

    async def stop(self) -> None:
        """End the watch and the questions in progress."""
        self.leave_definitions()
        await self._answers.stop()

    @property
    def follows_definitions(self) -> bool:
        """Return whether CustomResourceDefinitions are watched."""
        return self._definitions is not None

    def follow_definitions(self) -> None:
        """Watch CustomResourceDefinitions; where that is not allowed, their kinds are asked for like others."""
        if self._definitions is None:
            self._definitions = self._dynamic.open(
                CUSTOM_RESOURCE_DEFINITION, projection=_outline, changed=self._changed
            )
            [informer] = self._definitions.informers
            if not informer.indexed(_BY_KIND):
                informer.index(_BY_KIND, _kinds_of)

    def leave_definitions(self) -> None:
        """Watch CustomResourceDefinitions no more."""
        if self._definitions is not None:
            self._definitions.close()
            self._definitions = None

    async def find(self, kind: tuple[str, str]) -> ResourceType | None:
        """Return the resource of an apiVersion and a kind; None if it is not served."""
        api_version, _ = kind
        if self._definitions is not None:
            [informer] = self._definitions.informers
            await self._definitions.wait_read_within(READ_SECONDS)
            for definition in informer.by_index(_BY_KIND, group_kind(kind)):
                return _defined(definition, api_version)
        ask = partial(self._ask, api_version)
        return (await self._answers.get(api_version, ask, max_age=ANSWER_SECONDS)).get(kind)

    async def _ask(self, api_version: str) -> Mapping[tuple[str, str], ResourceType]:
        group, _, version = api_version.rpartition("/")
        try:
            answer = await self._client.fetch(f"/apis/{group}/{version}" if group else f"/api/{version}")
        except (NotFound, Forbidden):
            return {}
        return {
            (api_version, each["kind"]): ResourceType(
                group, version, each["kind"], each["name"], namespaced=each["namespaced"]
            )
            for each in answer.get("resources") or ()
            if "/" not in each["name"]
        }

    def _changed(self, event: Event | None) -> None:
        states = (event.old, event.new) if event is not None else ()
        definitions = [obj for obj in states if obj is not None]
        for definition in definitions:
            spec = definition["spec"]
            for version in spec["versions"]:
                self._answers.forget(f"{spec['group']}/{version['name']}")
        for kind in {kind for definition in definitions for kind in _kinds_of(definition)}:
            self._defined(kind)


def _outline(definition: JsonObject) -> JsonObject:
    """Return the part of a CustomResourceDefinition that says which kind it defines, without its schemas."""
    spec = definition["spec"]
    versions = [{"name": each["name"], "served": each["served"]} for each in spec["versions"]]
    conditions = (definition.get("status") or {}).get("conditions") or ()
    names = {field: spec["names"][field] for field in ("kind", "plural")}
    return {
        "metadata": {field: definition["metadata"][field] for field in ("name", "uid", "resourceVersion")},
        "spec": {"group": spec["group"], "names": names, "scope": spec["scope"], "versions": versions},
        "established": any(each["type"] == "Established" and each["status"] == "True" for each in conditions),
    }


def _kinds_of(outline: JsonObject) -> Iterable[str]:
    return (f"{outline['spec']['names']['kind']}.{outline['spec']['group']}",)


def _defined(outline: JsonObject, api_version: str) -> ResourceType | None:
    """Return the kind of a definition in one version; None if it is not served."""
    spec = outline["spec"]
    version = api_version.rpartition("/")[2]
    served = any(each["name"] == version and each["served"] for each in spec["versions"])
    if not outline["established"] or not served:
        return None
    names = spec["names"]
    namespaced = spec["scope"] == "Namespaced"
    return ResourceType(spec["group"], version, names["kind"], names["plural"], namespaced=namespaced)
