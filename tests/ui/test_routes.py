"""The page's API over HTTP: lists, documents, rights, parameters, headers and what is read as the viewer."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import aiohttp
import yaml

from kardinal.kube import Client, Connection
from tests.bundles.scripted_agent import ScriptedAgent
from tests.support.names import DEV, POLICIES, PROD, TEAM
from tests.support.objects import bundle, gate, pipeline
from tests.support.programs import start_controller
from tests.support.world import World
from tests.ui.served import follow, start_page
from tests.ui.viewers import token_of

REPOSITORY = "https://git.example.com/acme/gitops.git"


async def get(session: aiohttp.ClientSession, url: str, **headers: str) -> tuple[int, Any]:
    async with session.get(url, headers=headers) as answer:
        return answer.status, await answer.json(content_type=None)


async def promote(world: World) -> None:
    """Bring a Bundle through dev to a closed gate before prod; another one is older."""
    agent = ScriptedAgent(world)
    await start_controller(world, standalone=False)
    await world.apply(
        pipeline(REPOSITORY, environments=[DEV, PROD], provider="git"),
        pipeline(REPOSITORY, name="other", environments=["o-dev"], provider="git"),
        gate("release", "bundle.labels.go == 'yes'", applies_to=PROD, namespace=POLICIES, message="Ask the team"),
    )
    await world.apply(bundle("my-app-1", tag="1.0.0"))
    await agent.verify(f"my-app-1-{DEV}")
    await world.settle()


async def test_every_document_is_served(world: World, session: aiohttp.ClientSession) -> None:
    await promote(world)
    page = await start_page(world)
    of_pipeline = f"{page.api}/pipelines/{TEAM}/my-app"

    status, rows = await get(session, f"{page.api}/pipelines")
    assert (status, [row["name"] for row in rows["items"]]) == (HTTPStatus.OK, ["my-app", "other"])
    assert "next" not in rows
    _, document = await get(session, of_pipeline)
    gate_key = f"gate/{PROD}/{POLICIES}/release"
    assert {f"environment/{DEV}", f"environment/{PROD}", gate_key} == set(document["nodes"])
    _, environment = await get(session, f"{of_pipeline}/environments/{DEV}?bundle=my-app-1")
    assert environment["card"]["state"]["name"] == "Verified"
    _, drawer = await get(session, f"{of_pipeline}/gates/{PROD}/{POLICIES}/release")
    assert drawer["expression"] == "bundle.labels.go == 'yes'"
    _, of_bundle = await get(session, f"{page.api}/bundles/{TEAM}/my-app-1")
    assert of_bundle["card"]["runsIn"] == [DEV]
    _, graph = await get(session, f"{page.api}/graphs/{TEAM}/my-app-1")
    assert {node["child"] for node in graph["nodes"].values()} >= {"Verified"}
    _, graphs = await get(session, f"{page.api}/graphs?namespace={TEAM}")
    assert [each["name"] for each in graphs["items"]] == ["my-app-1"]
    _, bundles = await get(session, f"{page.api}/bundles?namespace={TEAM}&pipeline=my-app")
    assert [each["name"] for each in bundles["items"]] == ["my-app-1"]
    _, viewer = await get(session, f"{page.api}/viewer")
    assert viewer["user"] == "ada"
    _, described = await get(session, f"{page.api}/openapi.json")
    assert "/api/ui/v1/stream/overview" in described["paths"]


async def test_missing_object_is_answered_with_a_remedy(world: World, session: aiohttp.ClientSession) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[DEV], provider="git"))
    page = await start_page(world)

    status, answer = await get(session, f"{page.api}/pipelines/{TEAM}/my-ap")
    assert status == HTTPStatus.NOT_FOUND
    assert ("my-ap" in answer["message"], answer["remedy"]) == (True, "There are: my-app")
    for path in (
        f"pipelines/{TEAM}/my-app/environments/moon",
        f"pipelines/{TEAM}/my-app/gates/{DEV}/{TEAM}/none",
        f"pipelines/{TEAM}/my-app?bundle=none",
        f"bundles/{TEAM}/none",
        f"graphs/{TEAM}/none",
        f"stream/graphs/{TEAM}/none",
        "nothing",
    ):
        status, answer = await get(session, f"{page.api}/{path}")
        assert status == HTTPStatus.NOT_FOUND, path
        assert answer["message"], path
        assert answer["remedy"], path
    async with session.post(f"{page.api}/pipelines") as refused:
        assert refused.status == HTTPStatus.METHOD_NOT_ALLOWED
        assert "message" in await refused.json()


async def test_parameters_are_checked(world: World, session: aiohttp.ClientSession) -> None:
    page = await start_page(world)
    for query in (
        "pipelines?limit=0",
        "pipelines?limit=501",
        "pipelines?limit=x",
        "pipelines?limit=\N{SUPERSCRIPT TWO}",
        "pipelines?after=%00",
        "pipelines?after=shop",
        f"bundles?after={'a' * 900}/b",
        "bundles?pipeline=my-app",
        "pipelines?namespace=..%2F..",
        "graphs?namespace=A",
        "pipelines/team/UPPER",
        "pipelines/team/..%2f..",
        "yaml/bundle/team/..%2f..",
        "events?namespace=team",
        "stream/overview?namespace=_",
    ):
        status, answer = await get(session, f"{page.api}/{query}")
        assert status == HTTPStatus.BAD_REQUEST, query
        assert answer["remedy"], query


async def test_lists_come_in_pages(world: World, session: aiohttp.ClientSession) -> None:
    names = ["a", "b", "c"]
    await world.apply(
        *(pipeline(REPOSITORY, name=name, environments=[f"{name}-dev"], provider="git") for name in names),
        *(bundle(f"{name}-1", pipeline=name) for name in names),
    )
    await start_controller(world, standalone=False)
    await world.settle()
    page = await start_page(world)
    for kind, listed in (("pipelines", names), ("bundles", ["c-1", "b-1", "a-1"]), ("graphs", ["a-1", "b-1", "c-1"])):
        found: list[str] = []
        after = ""
        while True:
            _, part = await get(session, f"{page.api}/{kind}?limit=2&after={after}")
            found += [item["name"] for item in part["items"]]
            after = part.get("next", "")
            if not after:
                break
        assert found == listed, kind


async def test_namespace_that_may_not_be_seen_does_not_exist(world: World, session: aiohttp.ClientSession) -> None:
    await promote(world)
    page = await start_page(world)
    page.access.hidden.add(("pipelines", TEAM))
    documents = [
        f"pipelines/{TEAM}/my-app",
        f"pipelines/{TEAM}/my-app/environments/{DEV}",
        f"pipelines/{TEAM}/my-app/gates/{PROD}/{POLICIES}/release",
        f"bundles/{TEAM}/my-app-1",
    ]
    for path in (*documents, *(f"stream/{each}" for each in documents)):
        hidden = await get(session, f"{page.api}/{path}")
        absent = await get(session, f"{page.api}/{path.replace('my-app', 'none')}")
        assert hidden == absent, path
        assert hidden[0] == HTTPStatus.NOT_FOUND
    for kind in ("pipelines", "bundles"):
        assert (await get(session, f"{page.api}/{kind}"))[1]["items"] == []
    async with follow(session, f"{page.api}/stream/overview") as overview:
        await world.until(lambda: overview.last_id)
        assert overview.document == {"rows": {}, "notices": {}}


async def test_each_kind_needs_its_own_right(world: World, session: aiohttp.ClientSession) -> None:
    await promote(world)
    page = await start_page(world)
    page.access.hidden.add(("policygates", TEAM))

    status, answer = await get(session, f"{page.api}/pipelines/{TEAM}/my-app")
    assert status == HTTPStatus.FORBIDDEN
    assert "but not policygates" in answer["message"]
    assert (await get(session, f"{page.api}/pipelines"))[1]["items"] == []

    page.access.hidden = {("policygates", POLICIES)}
    status, _ = await get(session, f"{page.api}/pipelines/{TEAM}/my-app/gates/{PROD}/{POLICIES}/release")
    assert status == HTTPStatus.OK
    page.access.hidden = {("graphs", TEAM)}
    assert (await get(session, f"{page.api}/graphs/{TEAM}/my-app-1"))[0] == HTTPStatus.NOT_FOUND
    assert (await get(session, f"{page.api}/graphs"))[1]["items"] == []


async def test_yaml_and_events_are_read_as_the_viewer(world: World, session: aiohttp.ClientSession) -> None:
    await promote(world)
    page = await start_page(world)
    async with session.get(f"{page.api}/yaml/bundle/{TEAM}/my-app-1") as answer:
        assert answer.content_type == "application/yaml"
        assert yaml.safe_load(await answer.text())["metadata"]["name"] == "my-app-1"
    _, events = await get(session, f"{page.api}/events?namespace={TEAM}&bundle=my-app-1")
    assert {"Bundle my-app-1"} <= {event["about"] for event in events["items"]}
    for kind in ("secret", "configmap", "Secret"):
        status, _ = await get(session, f"{page.api}/yaml/{kind}/{TEAM}/my-app-1")
        assert status == HTTPStatus.NOT_FOUND

    own = (await world.client.connection.access()).with_token(await token_of(world, "stranger"))
    page.access.client = await world.cleanup.enter_async_context(Client(Connection(own), user_agent="kardinal-test"))
    status, answer_ = await get(session, f"{page.api}/yaml/bundle/{TEAM}/my-app-1")
    assert (status, answer_["message"]) == (HTTPStatus.FORBIDDEN, "you may not get bundles there")

    page.access.client = None
    for path in (f"yaml/bundle/{TEAM}/my-app-1", f"events?namespace={TEAM}&bundle=my-app-1"):
        status, answer_ = await get(session, f"{page.api}/{path}")
        assert status == HTTPStatus.FORBIDDEN
        assert answer_["command"].startswith("kubectl ")


async def test_viewers_cost_the_api_server_nothing(world: World, session: aiohttp.ClientSession) -> None:
    await promote(world)
    page = await start_page(world)
    await world.settle()
    before = world.audit.count()
    async with follow(session, f"{page.api}/stream/overview") as overview:
        await world.until(lambda: overview.last_id)
        for path in ("pipelines", "bundles", "graphs", f"pipelines/{TEAM}/my-app", f"bundles/{TEAM}/my-app-1"):
            assert (await get(session, f"{page.api}/{path}"))[0] == HTTPStatus.OK

    assert world.audit.count() == before


async def test_answers_protect_the_browser(world: World, session: aiohttp.ClientSession) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[DEV], provider="git"))
    page = await start_page(world)
    for path in ("/ui/", "/api/ui/v1/pipelines", "/api/ui/v1/nothing", "/api/ui/v1/stream/overview"):
        async with session.get(f"{page.page.url}{path}") as answer:
            policy = answer.headers["Content-Security-Policy"]
            assert "script-src 'self';" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Referrer-Policy"] == "no-referrer"
            # The HTML of a page that is built has no content of a viewer: it is asked for again, by its tag.
            assert answer.headers["Cache-Control"] in ("no-store", "no-cache" if path == "/ui/" else "no-store")


async def test_answers_are_compressed_and_compared(world: World, session: aiohttp.ClientSession) -> None:
    await world.apply(
        *(pipeline(REPOSITORY, name=f"app-{n}", environments=[f"dev-{n}"], provider="git") for n in range(5))
    )
    page = await start_page(world)
    async with session.get(f"{page.api}/pipelines") as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        tag = answer.headers["ETag"]
        assert len((await answer.json())["items"]) == 5
    async with session.get(f"{page.api}/pipelines", headers={"If-None-Match": tag}) as answer:
        assert answer.status == HTTPStatus.NOT_MODIFIED

    await world.apply(pipeline(REPOSITORY, name="new", environments=["dev-new"], provider="git"))
    await world.until(lambda: f"{TEAM}/new" in dict(page.page.feed.overview.rows([TEAM])))
    async with session.get(f"{page.api}/pipelines", headers={"If-None-Match": tag}) as answer:
        assert answer.status == HTTPStatus.OK


async def test_other_names_of_this_machine_are_refused(world: World, session: aiohttp.ClientSession) -> None:
    page = await start_page(world)
    for name, status in (
        ("evil.example.com", HTTPStatus.FORBIDDEN),
        ("localhost:9000", HTTPStatus.OK),
        ("[::1]:9000", HTTPStatus.OK),
        ("127.0.0.1.evil.example.com", HTTPStatus.FORBIDDEN),
    ):
        assert (await get(session, f"{page.api}/viewer", Host=name))[0] == status, name


async def test_page_may_live_below_a_path(world: World, session: aiohttp.ClientSession) -> None:
    page = await start_page(world, base_path="/kardinal")
    assert (await get(session, f"{page.page.url}/kardinal/api/ui/v1/viewer"))[0] == HTTPStatus.OK
    assert (await get(session, f"{page.page.url}/api/ui/v1/viewer"))[0] == HTTPStatus.NOT_FOUND
    async with session.get(f"{page.page.url}/kardinal/", allow_redirects=False) as answer:
        assert answer.headers["Location"] == "/kardinal/ui/"
