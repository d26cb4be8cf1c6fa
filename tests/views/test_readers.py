"""Views are the same whether an API server was asked or informers were: the contract of readers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from kardinal.git import GitRunner
from kardinal.kube import Client
from kardinal.promotion.api import Bundle, Pipeline
from kardinal.promotion.kinds import POLICY_GATE
from kardinal.promotion.policy.hold_gate import hold_gate
from kardinal.promotion.views.api_reader import ApiReader
from kardinal.promotion.views.bundles import bundle_lines
from kardinal.promotion.views.coverage import read_coverage
from kardinal.promotion.views.explanation import explanation_of
from kardinal.promotion.views.missing import NotThere
from kardinal.promotion.views.pipelines import pipeline_lines
from kardinal.promotion.views.promotions import promotions
from kardinal.promotion.views.reader import Reader
from kardinal.promotion.views.reading import find_pipeline, read_objects
from kardinal.promotion.views.render_failures import read_render_failures
from kardinal.promotion.views.status import status_view
from kardinal.promotion.views.steps import node_lines
from kardinal.runtime import Manager
from kardinal_controller.caches import Caches
from kardinal_controller.reader import InformerReader
from tests.bundles.scripted_agent import ScriptedAgent
from tests.support.names import DEV, POLICIES, PROD, STAGING, TEAM
from tests.support.objects import bundle, gate, pipeline
from tests.support.programs import start_controller
from tests.support.world import World

REPOSITORY = "https://git.example.com/acme/gitops.git"


@dataclass(eq=False)
class Copies:
    """The informers of a controller without its reconcilers."""

    manager: Manager
    caches: Caches
    runner: GitRunner | None = None

    async def start(self) -> None:
        await self.manager.start()

    async def stop(self) -> None:
        await self.manager.stop()


async def start_copies(world: World) -> Copies:
    def build(client: Client) -> Copies:
        manager = Manager(client, clock=world.clock, name="copies")
        return Copies(manager, Caches(manager))

    return await world.run(build, identity="controller")


async def promote_up_to_a_gate(world: World) -> None:
    """Bring a Bundle through dev to a closed gate before staging, and hold prod; another Bundle and Pipeline exist."""
    agent = ScriptedAgent(world)
    await start_controller(world, standalone=False)
    await world.apply(
        pipeline(REPOSITORY, environments=[DEV, STAGING, PROD], provider="git"),
        pipeline(REPOSITORY.replace("acme", "other"), name="other", environments=[DEV], provider="git"),
        gate("always", "true", applies_to=STAGING, namespace=POLICIES),
        gate("release", "bundle.labels.go == 'yes'", applies_to=STAGING, namespace=POLICIES, message="Ask the team"),
        hold_gate("my-app", PROD, namespace=TEAM, bundle="my-app-0", message="rolled back"),
        bundle("my-app-1", labels={"go": "no"}),
    )
    await agent.verify(f"my-app-1-{DEV}")
    await world.wait_for(
        POLICY_GATE, f"my-app-1-{STAGING}-release", lambda obj: obj.get("status", {}).get("ready") is False
    )
    await world.apply(bundle("other-1", pipeline="other"))
    await world.settle()


async def views(world: World, reader: Reader) -> dict[str, Any]:
    """Return every view of the world."""
    objects = await read_objects(reader, TEAM, "my-app")
    failures = await read_render_failures(reader, TEAM)
    stored = await reader.pipelines(TEAM)
    all_bundles = [Bundle.model_validate(item) for item in await reader.bundles(TEAM)]
    return {
        "status": status_view(objects, now=world.clock.now()),
        "explanations": [explanation_of(objects, name, failures=failures) for name in (DEV, STAGING, PROD)],
        "steps": node_lines(objects, failures),
        "bundles": bundle_lines(await reader.bundles(TEAM, "my-app")),
        "pipelines": pipeline_lines(
            map(Pipeline.model_validate, stored), bundles=all_bundles, gates=await reader.gates(TEAM)
        ),
        "promotions": promotions(objects.bundles),
        "coverage": await read_coverage(reader, TEAM, everywhere=True, policy_namespaces=(POLICIES,)),
        "coverage of one namespace": await read_coverage(reader, TEAM, everywhere=False, policy_namespaces=(POLICIES,)),
    }


async def test_views_are_the_same_by_both_readers(world: World) -> None:
    await promote_up_to_a_gate(world)
    copies = await start_copies(world)
    asked = ApiReader(world.client)
    kept = InformerReader(copies.caches, asked)
    by_server = await views(world, asked)
    by_informers = await views(world, kept)
    assert list(by_server) == list(by_informers)
    for name, view in by_server.items():
        assert view == by_informers[name], name

    # The comparison is one of something: the Bundle waits at the gate, and each part of the world is seen.
    states = {each.name: each.state for each in by_server["status"].environments}
    assert states == {DEV: "Verified", STAGING: "Blocked", PROD: "Waiting"}
    assert [hold.environment for hold in by_server["status"].holds] == [PROD]
    assert [each.result.split(":")[0].partition(" (")[0] for each in by_server["explanations"]] == [
        "VERIFIED",
        "BLOCKED by release",
        f"HELD by a hold on {PROD}",
    ]
    assert [line.name for line in by_server["pipelines"]] == ["my-app", "other"]
    assert [line.name for line in by_server["bundles"]] == ["my-app-1"]
    assert len(by_server["steps"]) == 5
    assert len(by_server["coverage"].paths) == 4


@pytest.mark.parametrize("of", ["server", "informers"])
async def test_a_pipeline_that_does_not_exist_is_missing_with_the_names_of_others(world: World, of: str) -> None:
    await world.apply(pipeline(REPOSITORY, provider="git"))
    readers: dict[str, Callable[[Copies], Reader]] = {
        "server": lambda _: ApiReader(world.client),
        "informers": lambda copies: InformerReader(copies.caches, ApiReader(world.client)),
    }
    reader = readers[of](await start_copies(world))
    with pytest.raises(NotThere, match=f"no Pipeline nowhere in namespace {TEAM}. There are: my-app"):
        await find_pipeline(reader, TEAM, "nowhere")
    assert await reader.bundle(TEAM, "nowhere") is None
    assert await reader.graph(TEAM, "nowhere") is None
