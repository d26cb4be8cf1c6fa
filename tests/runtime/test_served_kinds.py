"""Kinds by apiVersion and kind: those of the server, and those that are defined, changed and removed while it runs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.clock import Clock
from kardinal.kube import Client
from kardinal.objects import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, JsonObject, ResourceType
from kardinal.runtime import Manager
from kardinal.runtime.served_kinds import ANSWER_SECONDS, ServedKinds, group_kind
from kardinal_local.plane import LoggedRequest
from kardinal_local.stack import until_served
from tests.support.world import World

WIDGET = ResourceType("example.com", "v1", "Widget", "widgets")
ASKED = ("example.com/v1", "Widget")
NAME = "widgets.example.com"


def definition(*, served: bool = True) -> JsonObject:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [
        {"name": "v1", "served": served, "storage": False, "schema": {"openAPIV3Schema": schema}},
        {"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}},
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
            "versions": versions,
        },
    }


class Finder:
    """A program that only looks kinds up; `defined` are those whose definitions changed."""

    runner = None

    def __init__(self, client: Client, *, clock: Clock) -> None:
        self.manager = Manager(client, clock=clock, name="finder")
        self.defined: list[str] = []
        self.kinds = ServedKinds(client, self.manager.dynamic, clock=clock, defined=self.defined.append)

    async def start(self) -> None:
        await self.manager.start()

    async def stop(self) -> None:
        await self.kinds.stop()
        await self.manager.stop()


@pytest.fixture
async def finder(world: World) -> Finder:
    return await world.run(lambda client: Finder(client, clock=world.clock), identity="simulator")


async def until_found(world: World, finder: Finder, expected: ResourceType | None) -> None:
    async def is_so() -> bool:
        return await finder.kinds.find(ASKED) == expected

    await world.until(is_so)


def asked(world: World) -> list[str]:
    """Return a list that gets an entry for each group and version that is asked for from now on."""
    paths: list[str] = []

    def note(request: LoggedRequest) -> None:
        if request.resource.startswith("/api"):
            paths.append(request.resource)

    world.audit.subscribe(note)
    return paths


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (("v1", "ConfigMap"), "ConfigMap"),
        (("rbac.authorization.k8s.io/v1", "Role"), "Role.rbac.authorization.k8s.io"),
    ],
)
def test_group_kind_has_no_version(kind: tuple[str, str], name: str) -> None:
    assert group_kind(kind) == name


async def test_kinds_of_the_server_have_their_plural_and_scope(finder: Finder) -> None:
    assert await finder.kinds.find(("v1", "ConfigMap")) == CONFIG_MAP
    namespace = await finder.kinds.find(("v1", "Namespace"))
    assert namespace is not None
    assert (namespace.plural, namespace.namespaced) == ("namespaces", False)
    for kind in (("v1", "Nothing"), ("no.example/v1", "ConfigMap"), ("apps/v9", "Deployment")):
        assert await finder.kinds.find(kind) is None


@pytest.mark.local_only("only the local plane logs each request")
async def test_kinds_of_a_group_are_asked_for_once_a_minute(world: World, finder: Finder) -> None:
    paths = asked(world)
    for _ in range(3):
        for kind in ("Deployment", "Nothing", "StatefulSet"):
            await finder.kinds.find(("apps/v1", kind))
    assert paths == ["/apis"]
    await world.live(timedelta(seconds=ANSWER_SECONDS + 1))
    await finder.kinds.find(("apps/v1", "Deployment"))
    assert len(paths) == 2


async def test_definition_is_known_at_once_and_told(world: World, finder: Finder) -> None:
    finder.kinds.follow_definitions()
    assert await finder.kinds.find(ASKED) is None
    await world.client.create(CUSTOM_RESOURCE_DEFINITION, definition())
    await until_found(world, finder, WIDGET)
    assert set(finder.defined) == {"Widget.example.com"}
    finder.defined.clear()
    await world.client.apply(CUSTOM_RESOURCE_DEFINITION, definition(served=False), field_manager="test", force=True)
    await until_found(world, finder, None)
    assert finder.defined
    finder.defined.clear()
    await world.client.delete(CUSTOM_RESOURCE_DEFINITION, NAME)
    await world.settle()
    await world.until(lambda: finder.defined)
    await until_found(world, finder, None)


@pytest.mark.virtual_time("answers are used for a minute")
async def test_definitions_that_are_not_followed_are_asked_for(world: World, finder: Finder) -> None:
    assert await finder.kinds.find(ASKED) is None
    await world.client.create(CUSTOM_RESOURCE_DEFINITION, definition())
    await until_served(world.client, {NAME})
    assert await finder.kinds.find(ASKED) is None
    await world.live(timedelta(seconds=ANSWER_SECONDS + 1))
    await until_found(world, finder, WIDGET)
    assert finder.defined == []


@pytest.mark.local_only("only the local plane logs each request")
async def test_answer_is_forgotten_when_a_definition_of_its_group_changes(world: World, finder: Finder) -> None:
    finder.kinds.follow_definitions()
    paths = asked(world)
    other = ("example.com/v1", "Other")
    await finder.kinds.find(other)
    await finder.kinds.find(other)
    assert paths == ["/apis"]
    await world.client.create(CUSTOM_RESOURCE_DEFINITION, definition())
    await until_found(world, finder, WIDGET)
    await finder.kinds.find(other)
    assert len(paths) == 2
