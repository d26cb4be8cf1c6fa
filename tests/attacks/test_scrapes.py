"""Attacks on /metrics, which names the Pipelines of all teams: by strangers, and by accounts that may not read it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest
from structlog.testing import capture_logs

from kardinal.runtime import scrapes
from tests.support.identities import ACCOUNTS, RESOURCES, documents_of
from tests.support.names import TEAM
from tests.support.objects import bundle, pipeline
from tests.support.programs import start_agent, start_controller
from tests.support.world import World
from tests.ui.viewers import token_of

REPOSITORY = "https://git.example.com/acme/gitops.git"
REVIEWS = {"tokenreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io"}
NAMED = "kardinal_bundles_created_total{"


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
async def url(world: World) -> str:
    """Return the address of the metrics of a controller that knows a Pipeline."""
    await world.apply(pipeline(REPOSITORY, provider="git"))
    [reader] = documents_of("metrics-reader.yaml")
    await world.client.apply(RESOURCES["ClusterRole"], reader, field_manager="test", force=True)
    controller = await start_controller(world, standalone=False, metrics_auth="token")
    await world.apply(bundle("my-app-1"))
    await world.settle()
    return controller.metrics_url


async def let_read(world: World, account: str) -> None:
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"test-metrics-{account}"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "kardinal-metrics-reader",
        },
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": TEAM}],
    }
    await world.client.apply(RESOURCES["ClusterRoleBinding"], binding, field_manager="test", force=True)


async def scrape(session: aiohttp.ClientSession, url: str, token: str | None) -> tuple[int, str]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with session.get(f"{url}/metrics", headers=headers) as answer:
        return answer.status, await answer.text()


def reviews(world: World, identity: str = "controller") -> int:
    user = world.user(identity)
    return sum(world.audit.count(verbs={"create"}, resource=resource, user=user) for resource in REVIEWS)


async def test_a_stranger_reads_no_metrics(session: aiohttp.ClientSession, url: str) -> None:
    for token in (None, "", "a-guess", "Ünbekannt", "x" * 7000):
        status, text = await scrape(session, url, token)
        assert (token, status) == (token, 401)
        assert "my-app" not in text


async def test_an_account_reads_metrics_if_rbac_lets_it(world: World, session: aiohttp.ClientSession, url: str) -> None:
    token = await token_of(world, "prometheus")
    status, text = await scrape(session, url, token)
    assert (status, "kardinal-metrics-reader" in text, NAMED in text) == (403, True, False)
    other = await token_of(world, "monitoring")
    await let_read(world, "monitoring")

    async def is_let_in() -> bool:
        return (await scrape(session, url, other))[0] == 200

    await world.until(is_let_in)
    assert NAMED in (await scrape(session, url, other))[1]


async def test_a_scrape_every_few_seconds_costs_a_review_a_minute(
    world: World, session: aiohttp.ClientSession, url: str
) -> None:
    token = await token_of(world, "monitoring")
    await let_read(world, "monitoring")
    before = reviews(world)
    for _ in range(20):
        assert (await scrape(session, url, token))[0] == 200
    assert reviews(world) - before == len(REVIEWS)


async def test_a_stranger_with_many_tokens_causes_few_reviews_and_shuts_no_one_out(
    world: World, session: aiohttp.ClientSession, url: str
) -> None:
    token = await token_of(world, "monitoring")
    await let_read(world, "monitoring")
    assert (await scrape(session, url, token))[0] == 200
    before = reviews(world)
    statuses = [(await scrape(session, url, f"guess-{number}"))[0] for number in range(200)]
    assert set(statuses) == {401, 429}
    assert reviews(world) - before <= scrapes.GUESSES
    assert (await scrape(session, url, token))[0] == 200


async def test_a_program_that_may_not_ask_shows_no_metrics(
    world: World, session: aiohttp.ClientSession, url: str
) -> None:
    name = ACCOUNTS["controller"]
    role = await world.client.get(RESOURCES["ClusterRole"], name)
    rules = [rule for rule in role["rules"] if "tokenreviews" not in rule.get("resources", ())]
    await world.client.patch(RESOURCES["ClusterRole"], name, None, {"rules": rules})
    await world.settle()

    async def is_refused() -> bool:
        return (await scrape(session, url, "a-token"))[0] == 503

    with capture_logs() as lines:
        await world.until(is_refused)
    assert "--metrics-auth=none" in str(lines)


async def test_probes_are_open_and_an_agent_asks_as_well(world: World, session: aiohttp.ClientSession) -> None:
    agent = await start_agent(world, metrics_auth="token")
    urls = agent.manager.urls
    assert (await scrape(session, urls["metrics"], None))[0] == 401
    assert (await scrape(session, urls["metrics"], "a-guess"))[0] == 401
    assert reviews(world, "agent") == 1
    for path in ("/healthz", "/readyz"):
        async with session.get(f"{urls['probes']}{path}") as answer:
            assert answer.status == 200
