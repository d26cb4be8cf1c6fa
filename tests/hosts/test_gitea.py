"""Gitea in particular: forks, deleted branches, merge lists, archives, its webhooks and the permissions of a token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from hack.gitea.server import RunningGitea
from kardinal.scm import (
    PROVIDERS,
    AccessDenied,
    BehindBase,
    HostUnavailable,
    MergeBlocked,
    PullRequests,
    RequestRefused,
    UnsupportedProvider,
    WebhookRejected,
)
from tests.git.conftest import manifests
from tests.hosts.gitea_host import GiteaHost
from tests.hosts.host import HEAD, PATIENCE, new_pull_request, patient
from tests.support.gitea import Person, new_project, new_token
from tests.support.secret_values import secret_value

SECRET = secret_value("webhook-sécret")  # not only ASCII: people paste anything


@pytest.fixture
async def host(gitea: RunningGitea, tmp_path: Path) -> AsyncIterator[GiteaHost]:
    host = GiteaHost(tmp_path, new_project(gitea, manifests()))
    host.start()
    yield host
    await host.close()


@pytest.fixture
async def pulls(host: GiteaHost) -> PullRequests:
    return patient(await host.connect())


async def test_a_pull_request_of_a_fork_with_the_name_of_our_branch_is_neither_found_nor_adopted(
    host: GiteaHost, pulls: PullRequests
) -> None:
    host.project.api("POST", f"{host.project.path}/forks", {"name": "fork"}, by="carol")
    carol = host.project.people["carol"]
    host.git("branch", HEAD, "main")
    host.git.commit({"README.md": "mine\n"}, branch=HEAD, parent=host.git("rev-parse", "main"))
    fork = f"{host.project.server.url}/{carol.name}/fork.git"
    host.git(*host.project.git_options("carol"), "push", "--quiet", fork, f"{HEAD}:{HEAD}")
    foreign = {"title": "theirs", "head": f"{carol.name}/fork:{HEAD}", "base": "main"}
    async with asyncio.timeout(PATIENCE):
        while (asked := host.project.ask("POST", f"{host.project.path}/pulls", foreign, by="carol"))[0] != 201:
            assert asked[0] == 404, asked
            await asyncio.sleep(0.05)
    theirs = asked[1]["number"]
    assert await pulls.find(HEAD, base="main") is None
    host.propose()
    opened = await pulls.open(new_pull_request())
    assert opened.number != theirs
    assert opened.author == host.project.people["bot"].name
    found = await pulls.find(HEAD, base="main")
    assert found is not None
    assert found.number == opened.number


async def test_a_deleted_branch_closes_its_pull_request(host: GiteaHost, pulls: PullRequests) -> None:
    host.propose()
    number = (await pulls.open(new_pull_request())).number
    host.delete_branch(HEAD)
    async with asyncio.timeout(PATIENCE):
        while (await pulls.get(number)).state == "open":
            await asyncio.sleep(0.05)
    assert (await pulls.get(number)).merge_commit is None


async def test_a_merge_list_without_kardinal_is_named(host: GiteaHost, pulls: PullRequests) -> None:
    host.propose()
    number = (await pulls.open(new_pull_request())).number
    alice = host.project.people["alice"].name
    host.project.protect("main", enable_merge_whitelist=True, merge_whitelist_usernames=[alice])
    with pytest.raises(AccessDenied, match="merge list of the branch protection") as denied:
        await pulls.merge(number, by="kardinal")
    assert denied.value.blocked


async def test_only_an_administrator_of_the_repository_may_merge_without_a_required_status(
    host: GiteaHost, pulls: PullRequests
) -> None:
    host.propose()
    number = (await pulls.open(new_pull_request())).number
    host.require_status("main", "kardinal")
    with pytest.raises(AssertionError, match="Not all required status checks"):
        await host.merge(number, "merge")
    path = f"{host.project.path}/pulls/{number}/merge"
    forced = {"Do": "merge", "force_merge": True}
    assert host.project.ask("POST", path, forced, by="alice")[0] == 405
    alice = host.project.people["alice"].name
    host.project.api("PUT", f"{host.project.path}/collaborators/{alice}", {"permission": "admin"})
    host.project.api("POST", path, forced, by="alice")
    assert (await pulls.get(number)).state == "merged"


async def test_a_merge_method_that_the_settings_forbid_is_named(host: GiteaHost, pulls: PullRequests) -> None:
    settings = {"has_pull_requests": True, "allow_rebase": False, "default_merge_style": "squash"}
    host.project.api("PATCH", host.project.path, settings)
    assert (await pulls.access()).merge_methods == {"merge", "squash"}
    host.propose()
    number = (await pulls.open(new_pull_request())).number
    with pytest.raises(RequestRefused, match=r"git\.mergeMethod"):
        await pulls.merge(number, by="kardinal", method="rebase")
    merged = await pulls.merge(number, by="kardinal")
    assert host.git("show", "-s", "--format=%P", host.tip("main")).count(" ") == 0
    assert merged.merge_commit == host.tip("main")


async def test_an_archived_repository_is_named(host: GiteaHost, pulls: PullRequests) -> None:
    host.propose()
    host.project.api("PATCH", host.project.path, {"archived": True})
    access = await pulls.access(("pull-requests", "statuses"))
    assert (access.archived, access.push) == (True, False)
    with pytest.raises(RequestRefused, match="archived"):
        await (await host.connect()).open(new_pull_request(labels=()))


async def test_reading_is_not_writing(host: GiteaHost) -> None:
    bot = host.project.people["bot"]
    host.propose()
    for scope, missing in (("read:repository", "write:repository"), ("write:repository", "write:issue")):
        token = new_token(host.project.server, bot.name, (scope,))
        host.project.people["bot"] = Person(bot.name, token)
        with pytest.raises(AccessDenied, match=missing) as denied:
            await (await host.connect()).open(
                new_pull_request(labels=() if scope.startswith("read") else ("kardinal",))
            )
        assert denied.value.blocked
        assert token not in str(denied.value)


async def test_the_scopes_that_a_token_lacks_are_found_without_changing_anything(host: GiteaHost) -> None:
    bot = host.project.people["bot"]
    for scopes, lacks in (
        (("write:repository", "read:issue", "read:user"), ("write:issue",)),
        (("write:repository",), ("write:issue", "read:user")),
        (("read:repository",), ("write:repository", "write:issue", "read:user")),
    ):
        token = new_token(host.project.server, bot.name, scopes)
        host.project.people["bot"] = Person(bot.name, token)
        assert (await (await host.connect()).access(("pull-requests", "statuses"))).lacks == lacks


async def test_a_protection_says_whether_kardinal_may_push_and_merge(host: GiteaHost, pulls: PullRequests) -> None:
    open_branch = await pulls.branch_access("main")
    assert (open_branch.push, open_branch.merge) == (True, True)
    alice = host.project.people["alice"].name
    host.project.protect("main", enable_merge_whitelist=True, merge_whitelist_usernames=[alice])
    protected = await pulls.branch_access("main")
    assert (protected.push, protected.merge) == (False, False)


async def test_a_repository_without_pull_requests_is_known(host: GiteaHost, pulls: PullRequests) -> None:
    host.project.api("PATCH", host.project.path, {"has_pull_requests": False})
    assert (await pulls.access(("pull-requests", "statuses"))).pull_requests is False


async def test_a_branch_that_the_base_has_already_is_still_a_pull_request_of_the_host(
    host: GiteaHost, pulls: PullRequests
) -> None:
    host.git("branch", HEAD, "main")
    host.publish(HEAD)
    opened = await pulls.open(new_pull_request())
    assert opened.head_commit == host.tip("main")


async def test_a_force_push_is_seen_as_a_new_head(host: GiteaHost, pulls: PullRequests) -> None:
    host.propose()
    opened = await pulls.open(new_pull_request())
    rebuilt = host.propose(content="v3\n")
    assert rebuilt != opened.head_commit
    assert (await pulls.get(opened.number)).head_commit == rebuilt


async def test_an_authority_that_the_secret_does_not_have_is_not_trusted(host: GiteaHost) -> None:
    original = host.target
    host.target = lambda sessions: replace(original(sessions), authority="")  # type: ignore[method-assign]
    with pytest.raises(HostUnavailable, match=r"ca\.crt") as unreachable:
        await (await host.connect()).access()
    assert unreachable.value.transient


async def test_a_repository_without_an_owner_is_refused(host: GiteaHost) -> None:
    host.url = f"{host.project.server.url}/config"
    with pytest.raises(UnsupportedProvider, match="https://host/owner/repository"):
        await host.connect()


async def test_deliveries_of_the_host_are_signed_as_they_are_checked(host: GiteaHost, pulls: PullRequests) -> None:
    received: asyncio.Queue[tuple[dict[str, str], bytes]] = asyncio.Queue()

    async def receive(request: web.Request) -> web.Response:
        await received.put((dict(request.headers), await request.read()))
        return web.Response()

    application = web.Application()
    application.router.add_post("/", receive)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        address = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        config = {"url": address, "content_type": "json", "secret": SECRET}
        hook = {"type": "gitea", "config": config, "events": ["pull_request", "push"], "active": True}
        await asyncio.to_thread(host.project.api, "POST", f"{host.project.path}/hooks", hook)
        await asyncio.to_thread(host.propose)
        number = (await pulls.open(new_pull_request())).number
        async with asyncio.timeout(PATIENCE):
            while True:
                headers, body = await received.get()
                parse = PROVIDERS["gitea"].parse_webhook
                assert parse is not None
                delivery = parse(headers, body, SECRET.encode())
                with pytest.raises(WebhookRejected):
                    parse(headers, body + b" ", SECRET.encode())
                if delivery.number is not None:
                    break
                assert delivery.event in ("push", "create")
                assert not delivery.proposed
        assert delivery.proposed
        assert (delivery.number, delivery.branch) == (number, HEAD)
        assert delivery.repository == host.url
        assert delivery.commit == (await pulls.get(number)).head_commit
    finally:
        await runner.cleanup()


async def test_one_behind_a_base_that_blocks_outdated_branches_is_updated_by_the_host(
    host: GiteaHost, pulls: PullRequests
) -> None:
    host.project.protect("main", block_on_outdated_branch=True, enable_push=True)
    proposed = host.propose()
    host.add_commit("main", "README.md", "others went on\n")
    # The host counts the commits that are missing when it opens one, and later in the background.
    opened = await pulls.open(new_pull_request())
    once = await host.connect()
    async with asyncio.timeout(PATIENCE):
        while True:
            with pytest.raises(MergeBlocked) as blocked:
                await once.merge(opened.number, by="kardinal", expected_head=proposed)
            if isinstance(blocked.value, BehindBase):
                break
            await asyncio.sleep(0.1)  # it still compares the branches
    await pulls.bring_up_to_date(opened.number, expected_head=proposed)
    head = host.tip(HEAD)
    assert host.git("show", "-s", "--format=%P", head).split() == [proposed, host.tip("main")]
    merged = await pulls.merge(opened.number, by="kardinal")
    assert merged.merge_commit == host.tip("main")
    assert host.content("main", "README.md") == "others went on"
