"""Buttons do what commands do, with the viewer's own rights, and on this machine alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from kardinal.kube import Client, load_connection
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE
from kardinal_controller.ui.access import SESSION_HEADER, KubeconfigAccess, Reviews
from kardinal_controller.ui.actions import ActionRoutes, command_of
from kardinal_controller.ui.model import ActionRequest
from tests.cli.promoted import put_bundle, verified
from tests.support.names import DEV, PROD, TEAM
from tests.support.objects import bundle, environment, pipeline
from tests.support.people import people_of
from tests.support.programs import start_controller
from tests.support.repository import GitRepository
from tests.support.reviewer import propose
from tests.support.secret_values import know_secret
from tests.support.world import World
from tests.ui.test_access_token import replica
from tests.ui.viewers import Page, answer_of, reception_of, serve, token_of

REPOSITORY = "https://git.example.com/acme/gitops.git"
HOLD = f"my-app-{PROD}-hold"


class Buttons:
    """The buttons of a page that a user has opened."""

    def __init__(self, page: Page, session: aiohttp.ClientSession, secret: str) -> None:
        self.page = page
        self._session = session
        self._headers = {SESSION_HEADER: secret}

    async def press(self, action: str, *, dry_run: bool = False, **body: Any) -> tuple[int, Any]:
        url = f"{self.page.url}/api/ui/v1/actions/{action}{'?dry-run=true' if dry_run else ''}"
        wanted = {"namespace": TEAM, "pipeline": "my-app", **body}
        async with self._session.post(url, json=wanted, headers=self._headers) as answer:
            return await answer_of(answer)


@asynccontextmanager
async def buttons_of(world: World, client: Client, *, approvals: str | None = None) -> AsyncIterator[Buttons]:
    reviews = Reviews(client, clock=world.clock)
    access = KubeconfigAccess(client, person=await reviews.own_person(), reception=reception_of(world, reviews))
    groups = [ActionRoutes(access, approvals=approvals).group()]
    async with serve(access, groups=groups) as page, aiohttp.ClientSession() as session:
        code = know_secret(access.link(page.url).partition("code=")[2])
        async with session.post(f"{page.url}/api/ui/v1/session", json={"code": code}) as answer:
            yield Buttons(page, session, know_secret((await answer.json())["secret"]))


@pytest.fixture
async def buttons(world: World) -> AsyncIterator[Buttons]:
    """Return the buttons of the administrator."""
    async with buttons_of(world, world.client) as found:
        yield found


async def test_a_promotion_is_planned_before_it_is_asked_for(
    world: World, buttons: Buttons, repository: GitRepository
) -> None:
    await start_controller(world, standalone=False)
    await world.apply(pipeline(repository, environments=[DEV]))
    await world.apply(bundle("my-app-1", tag="1.1.0"))
    head = repository.head()
    status, planned = await buttons.press("promote", dry_run=True, environment=DEV, bundle="my-app-1")
    assert status == 200, planned
    [change] = planned["plan"]
    assert change["environment"] == DEV
    assert "1.1.0" in change["diff"]
    assert planned["command"] == f"kardinal promote my-app --env {DEV} --bundle my-app-1 -n {TEAM}"
    assert repository.head() == head
    assert "requests" not in (await world.get(BUNDLE, "my-app-1"))["spec"].get("intent", {})
    status, done = await buttons.press("promote", environment=DEV, bundle="my-app-1")
    assert (status, done["lines"][0]) == (200, f"Bundle my-app-1 goes on to {DEV}")
    assert "plan" not in done
    [request] = (await world.get(BUNDLE, "my-app-1"))["spec"]["intent"]["requests"]
    assert (request["action"], request["environment"]) == ("promote", DEV)
    assert request["by"]
    await world.settle()


async def test_a_pause_and_its_end(world: World, buttons: Buttons) -> None:
    await world.apply(pipeline(REPOSITORY))
    assert (await buttons.press("pause", dry_run=True, reason="audit"))[0] == 200
    assert await world.objects(POLICY_GATE) == []
    assert (await buttons.press("pause", reason="audit"))[1]["lines"] == ["Pipeline my-app paused"]
    [gate] = await world.objects(POLICY_GATE)
    assert gate["spec"]["message"] == "audit"
    assert (await buttons.press("pause"))[1]["lines"] == ["Pipeline my-app is paused already"]
    assert (await buttons.press("resume", dry_run=True))[0] == 200
    assert len(await world.objects(POLICY_GATE)) == 1
    assert (await buttons.press("resume"))[1]["lines"] == ["Pipeline my-app resumed"]
    assert (await buttons.press("resume"))[1]["lines"] == ["Pipeline my-app is not paused"]


async def test_a_rollback_holds_the_environment_until_it_is_resumed(world: World, buttons: Buttons) -> None:
    await world.apply(pipeline(REPOSITORY))
    await put_bundle(world, "app-1", environments={PROD: verified(8)}, sequence=1, tag="1.0.0")
    await put_bundle(world, "app-2", environments={PROD: verified(9)}, sequence=2, tag="2.0.0")
    status, told = await buttons.press("rollback", dry_run=True, environment=PROD)
    assert (status, told["lines"][0].startswith(f"{PROD} would go back ")) == (200, True)
    assert len(await world.objects(BUNDLE)) == 2
    status, done = await buttons.press("rollback", environment=PROD)
    assert (status, done["command"]) == (200, f"kardinal rollback my-app --env {PROD} -n {TEAM}")
    assert len(await world.objects(BUNDLE)) == 3
    assert (await world.get(POLICY_GATE, HOLD))["spec"]["message"].startswith("rolled back")
    status, refused = await buttons.press("promote", environment=PROD, bundle="app-2")
    assert status == 409
    assert refused["remedy"].endswith(f": kardinal resume my-app --env {PROD}")
    done = (await buttons.press("resume", environment=PROD))[1]
    assert done["lines"] == [f"{PROD} of Pipeline my-app takes Bundles again"]
    assert await world.find(POLICY_GATE, HOLD) is None


async def test_a_pull_request_of_a_local_repository_is_merged(
    world: World, buttons: Buttons, repository: GitRepository
) -> None:
    await world.apply(pipeline(repository, environments=[environment(PROD, approval="pr-review")]), bundle("my-app-1"))
    path = f"environments/{PROD}/kustomization.yaml"
    branch = f"kardinal/my-app-1/{PROD}"
    repository.git("branch", branch, "main")
    repository.commit({path: repository.read(path) + "# 1.1.0\n"}, branch=branch)
    await propose(world, repository, branch, pipeline="my-app", bundle="my-app-1")
    head = repository.head()
    await buttons.press("pause", reason="audit week")
    status, refused = await buttons.press("merge", pullRequest=1)
    assert (status, refused["message"]) == (409, "Pipeline my-app is paused: audit week")
    await buttons.press("resume")
    status, told = await buttons.press("merge", dry_run=True, pullRequest=1)
    assert (status, "would be merged into main" in told["lines"][0]) == (200, True)
    assert repository.head() == head
    status, done = await buttons.press("merge", pullRequest=1)
    assert (status, done["lines"][0].startswith("#1 merged as ")) == (200, True)
    assert repository.head() != head
    await world.apply(pipeline(REPOSITORY, name="other", provider="github"))
    status, refused = await buttons.press("merge", pipeline="other", pullRequest=1)
    assert (status, "at its Git host" in refused["message"]) == (409, True)


async def test_an_action_has_the_rights_of_the_viewer(world: World, tmp_path: Path) -> None:
    await world.apply(pipeline(REPOSITORY))
    async with people_of(world) as people:
        kubeconfig = await people.kubeconfig_of_account("dana", tmp_path)
        await people.bind(f"system:serviceaccount:{TEAM}:dana", "view", namespace=TEAM)
        connection = await load_connection(kubeconfig)
    async with Client(connection, user_agent="test") as client, buttons_of(world, client) as buttons:
        status, refused = await buttons.press("pause")
        assert (status, refused["command"]) == (403, f"kardinal pause my-app -n {TEAM}")
        assert "kardinal-promoter" in refused["remedy"]
    assert await world.objects(POLICY_GATE) == []


async def test_the_page_of_a_cluster_changes_nothing_and_says_the_command(world: World) -> None:
    await world.apply(pipeline(REPOSITORY))
    token = await token_of(world, "dana")
    jar = aiohttp.CookieJar(unsafe=True)
    async with replica(world, actions=True) as page, aiohttp.ClientSession(cookie_jar=jar) as session:
        async with session.post(f"{page.url}/api/ui/v1/session", json={"token": token}) as answer:
            assert answer.status == 200
        buttons = Buttons(page, session, "none")
        requests = world.audit.count()
        for action in ("promote", "retry", "pause", "resume", "rollback", "merge", "approve"):
            status, refused = await buttons.press(action, environment=PROD, bundle="app-1", pullRequest=1)
            assert status == 403
            assert refused["command"].startswith("kardinal ")
        writes = {"create", "update", "patch", "delete"}
        assert world.audit.count(verbs=writes, resource="policygates.kardinal.io") == 0
        assert world.audit.count() - requests < 5, "reviews of the viewer alone"


async def test_a_request_without_the_secret_of_the_page_does_nothing(world: World, buttons: Buttons) -> None:
    await world.apply(pipeline(REPOSITORY))
    url = f"{buttons.page.url}/api/ui/v1/actions/pause"
    body = {"namespace": TEAM, "pipeline": "my-app"}
    async with aiohttp.ClientSession() as stranger:
        async with stranger.post(url, json=body) as answer:
            assert answer.status == 401
        async with stranger.post(url, json=body, headers={"Origin": "http://evil.example.com"}) as answer:
            assert answer.status == 403
    assert await world.objects(POLICY_GATE) == []


async def test_a_malformed_action_is_refused_with_the_field(buttons: Buttons) -> None:
    assert (await buttons.press("destroy"))[0] == 404
    for body in ({"namespace": "x" * 300}, {"hold": "perhaps"}, {"pullRequest": 0}, {"more": 1}, {"pipeline": None}):
        status, answer = await buttons.press("pause", **body)
        assert status == 400, body
        assert answer["message"].partition(":")[0] in body
    assert (await buttons.press("pause", reason="x" * 20_000))[0] == 413
    for action in ("promote", "retry", "rollback", "merge", "approve"):
        assert (await buttons.press(action))[0] == 409
    assert (await buttons.press("pause", pipeline="../../secrets"))[0] in (404, 409)
    assert (await buttons.press("pause", namespace="../x"))[0] in (404, 409)


@pytest.mark.parametrize(
    ("action", "wanted", "command"),
    [
        ("promote", {"environment": "prod"}, "kardinal promote app --env prod -n team"),
        ("retry", {"environment": "prod", "bundle": "app-1"}, "kardinal retry app-1 --env prod -n team"),
        ("pause", {"reason": "it's late; rm -rf ~"}, "kardinal pause app --reason 'it'\"'\"'s late; rm -rf ~' -n team"),
        ("resume", {"environment": "prod"}, "kardinal resume app --env prod -n team"),
        (
            "rollback",
            {"environment": "prod", "bundle": "app-1", "emergency": True, "hold": False},
            "kardinal rollback app --env prod --to app-1 --emergency --no-hold -n team",
        ),
        ("merge", {"pull_request": 7}, "kardinal pr merge 7 -n team"),
        (
            "approve",
            {"environment": "prod", "bundle": "app-1", "gate": "policies/signoff", "reason": "looks good"},
            "kardinal approve app-1 --env prod --gate policies/signoff --reason 'looks good' -n team",
        ),
    ],
)
def test_the_command_of_an_action_can_be_pasted(action: str, wanted: dict[str, Any], command: str) -> None:
    assert command_of(action, ActionRequest(namespace="team", pipeline="app", **wanted)) == command
