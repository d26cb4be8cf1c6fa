"""Bad days of chains that have made runs and Bundles: (kind, name, uid) of all of them stay what they were."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from kardinal.objects import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, SERVICE_ACCOUNT, JsonObject
from kardinal.promotion.kinds import BUNDLE
from kardinal_local.stack import until_served
from kardinal_supplychain.api.kinds import CLUSTER_SUPPLY_CHAIN, WORKLOAD
from tests.graph.interruptions import before_write, refuse
from tests.supplychain.chains import Chains, Requests, apply, condition, definitions
from tests.supplychain.shop import MAY, build_template, identities, is_ready, made, once_each, shop, shop_chain, start
from tests.support.accounts import allow
from tests.support.identities import RESOURCES
from tests.support.names import DEV, TEAM
from tests.support.objects import bundle, pipeline
from tests.support.programs import start_controller, start_simulator
from tests.support.repository import GitRepository

MANY = 100

Act = Callable[[Chains], Awaitable[None]]


async def until_ready(chains: Chains, generation: int) -> None:
    await chains.world.wait_for(WORKLOAD, "web", is_ready(generation))


@pytest.mark.virtual_time("a refused write is tried again after a while")
@pytest.mark.parametrize("status", [409, 429, 500, 503])
async def test_each_write_that_is_refused_once_makes_its_object_once(chains: Chains, status: int) -> None:
    await start(chains)
    refused: set[tuple[str, str]] = set()

    def is_first(method: str, path: str) -> bool:
        if method == "GET" or (method, path) in refused:
            return False
        refused.add((method, path))
        return True

    refuse(chains.program.manager.client, is_first, status=status)
    await chains.apply(shop("b"))
    await until_ready(chains, 2)
    assert (await made(chains.world)).images == once_each("a", "b")
    assert {path.rpartition("/")[2] for _, path in refused} >= {"configmaps", "bundles", "status"}


async def delete_blueprint(chains: Chains) -> None:
    await chains.world.client.delete(CLUSTER_SUPPLY_CHAIN, "chain")


async def create_blueprint(chains: Chains) -> None:
    await apply(chains.world, *shop_chain(reverse=True))


async def replace_blueprint(chains: Chains) -> None:
    await delete_blueprint(chains)
    await create_blueprint(chains)


async def revoke(chains: Chains) -> None:
    await chains.world.client.delete(RESOURCES["Role"], "rights-of-dev", TEAM)


async def give_back(chains: Chains) -> None:
    await allow(chains.world, "dev", *MAY)


async def delete_account(chains: Chains) -> None:
    await chains.world.delete(SERVICE_ACCOUNT, "dev")


async def create_account(chains: Chains) -> None:
    await chains.account("dev")


async def nothing(chains: Chains) -> None:
    """Let all be as it is."""


@pytest.mark.parametrize(
    ("strike", "mend"),
    [
        (delete_blueprint, create_blueprint),
        (replace_blueprint, nothing),
        (revoke, give_back),
        (delete_account, create_account),
    ],
    ids=["blueprint-gone", "blueprint-replaced", "rights-revoked", "account-gone"],
)
@pytest.mark.parametrize("restarted", [False, True], ids=["alive", "restarted"])
async def test_strike_in_flight_loses_and_repeats_nothing(
    chains: Chains, strike: Act, mend: Act, *, restarted: bool
) -> None:
    """It comes while a write of a change is on its way: of the first run, the third, the Bundle or the status."""
    await start(chains)
    values = ["a"]
    for write, value in ((0, "b"), (2, "a"), (3, "c"), (4, "a")):
        before = await made(chains.world)
        reached = before_write(chains.program.manager.client, write, lambda: strike(chains))
        await chains.apply(shop(value))
        assert reached.is_set()
        if restarted:
            await chains.restart()
            await chains.world.settle()
        await mend(chains)
        values.append(value)
        await until_ready(chains, len(values))
        await chains.world.settle()
        after = await made(chains.world)
        assert before.objects <= after.objects
        assert after.images == once_each(*values)


OPTIONS = {
    "options": [
        {"name": "build", "selector": {"matchLabels": {"compiler": "old"}}},
        {"name": "other", "selector": {"matchLabels": {"compiler": "new"}}},
    ]
}


async def with_options(chains: Chains, other_image: str) -> None:
    await chains.apply(build_template("other", other_image))
    await chains.account("dev", *MAY)
    await chains.apply(*shop_chain(build=OPTIONS), shop(compiler="old"))


async def test_option_of_the_same_render_makes_nothing(chains: Chains) -> None:
    await with_options(chains, "shop:$(params.value)$")
    before = await made(chains.world)
    assert before.images == once_each("a")
    for compiler in ("new", "old"):
        await chains.apply(shop(compiler=compiler))
        assert await made(chains.world) == before


async def test_option_that_is_flipped_and_back_in_flight_makes_nothing(chains: Chains) -> None:
    await with_options(chains, "other:$(params.value)$")
    before = await made(chains.world)

    async def flip() -> None:
        await apply(chains.world, shop("b", compiler="new"))
        await apply(chains.world, shop("b", compiler="old"))

    reached = before_write(chains.program.manager.client, 0, flip)
    await chains.apply(shop("b", compiler="old"))
    assert reached.is_set()
    after = await made(chains.world)
    assert before.objects <= after.objects
    assert after.images == once_each("a", "b")


async def test_option_that_is_flipped_and_stays_makes_a_third_run_when_it_comes_back(chains: Chains) -> None:
    """A, B, A: what the first one made stays, and is not taken for the third."""
    await with_options(chains, "other:$(params.value)$")
    before = await made(chains.world)
    for compiler in ("new", "old"):
        await chains.apply(shop(compiler=compiler))
    after = await made(chains.world)
    assert before.objects <= after.objects
    added = after.images - before.images
    assert added == {(kind, image): 1 for kind in ("ConfigMap", "Bundle") for image in ("other:a", "shop:a")}


def of_many() -> list[JsonObject]:
    return [shop(name=f"shop-{index}") for index in range(MANY)]


@pytest.mark.timeout(170)
async def test_restart_with_many_workloads_changes_nothing(chains: Chains) -> None:
    await start(chains, *of_many())
    before = await made(chains.world)
    assert len(before.objects) == 4 * MANY
    requests = Requests(chains)
    await chains.restart()
    assert (await requests.take()).made == []
    assert await made(chains.world) == before


GONE = ("clustersupplychains.carto.run", "clusterimagetemplates.carto.run", "clustertemplates.carto.run")


@pytest.mark.timeout(170)
async def test_kinds_of_blueprints_and_templates_are_removed_and_back(chains: Chains) -> None:
    """Their objects are gone with them, and so every blueprint and template."""
    await start(chains, *of_many())
    before = await made(chains.world)
    for name in GONE:
        await chains.world.client.delete(CUSTOM_RESOURCE_DEFINITION, name)
    await chains.world.until(lambda: are_gone(chains))
    await chains.world.settle()
    assert (await made(chains.world)) == before
    for definition in definitions():
        if definition["metadata"]["name"] in GONE:
            await chains.world.client.create(CUSTOM_RESOURCE_DEFINITION, definition)
    await until_served(chains.world.client, set(GONE))
    await chains.apply(*shop_chain())
    assert (await made(chains.world)) == before
    await chains.apply(shop("b", "shop-0"))
    await chains.world.wait_for(WORKLOAD, "shop-0", is_ready(2))
    after = await made(chains.world)
    assert before.objects <= after.objects
    assert after.images - before.images == once_each("b")


async def are_gone(chains: Chains) -> bool:
    found = await chains.world.objects(CUSTOM_RESOURCE_DEFINITION)
    return not {each["metadata"]["name"] for each in found} & {*GONE}


def is_verified(found: JsonObject) -> bool:
    return (found.get("status") or {}).get("phase") == "Verified"


async def test_bundle_that_the_history_limit_removed_is_not_made_again(
    chains: Chains, repository: GitRepository
) -> None:
    """A person creates newer ones for the same Pipeline."""
    await start(chains)
    runs = await identities(chains.world, CONFIG_MAP)
    [ours] = await chains.world.objects(BUNDLE, TEAM)
    await start_controller(chains.world)
    await start_simulator(chains.world)
    await chains.world.apply(pipeline(repository, name="shop", environments=[DEV], historyLimit=1))
    for number in (1, 2):
        # Bundles of one second have no order.
        await chains.world.live(timedelta(seconds=2))
        await chains.world.apply(bundle(f"person-{number}", tag=f"{number}.0.0", pipeline="shop"))
        await chains.world.wait_for(BUNDLE, f"person-{number}", is_verified)

    async def is_gone() -> bool:
        return await chains.world.find(BUNDLE, ours["metadata"]["name"]) is None

    await chains.world.until(is_gone)
    left = await identities(chains.world, BUNDLE)
    assert {name for _, name, _ in left} <= {"person-1", "person-2"}
    await chains.restart()
    assert condition(await chains.status(), "Ready")[0] == "True"
    assert await identities(chains.world, BUNDLE) == left
    assert await identities(chains.world, CONFIG_MAP) == runs
