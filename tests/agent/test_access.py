"""A Pipeline says what its host will not let promotions do, before the first of them needs it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.agent.hosted import git_secret
from tests.agent.promotion_steps import start_agent
from tests.agent.rights import archive, forbid, narrow_token, protect, switch_pull_requests_off
from tests.agent.sites import EVERYWHERE, GiteaSite, GitHubSite, Site
from tests.agent.test_readiness import judged
from tests.hosts.fakes.github_state import Ruleset
from tests.support.names import PROD
from tests.support.objects import environment, pipeline
from tests.support.smart_server import PASSWORD
from tests.support.world import World

DIRECT: dict[str, Any] = {}
REVIEWED: dict[str, Any] = {"approval": "pr-review"}
MERGED: dict[str, Any] = {"pr": True}


async def apply(world: World, site: Site, *, git: dict[str, Any] | None = None, **spec: Any) -> None:
    """Start an agent and apply a Pipeline with one environment."""
    await start_agent(world)
    made = pipeline(site.url, provider=site.provider, environments=[environment(PROD, **spec)])
    made["spec"]["git"] |= {"secretRef": {"name": "git"}, **(git or {})}
    await world.apply(git_secret(site), made)


@EVERYWHERE
async def test_a_host_that_allows_everything_is_asked_once_and_never_again(world: World, site: Site) -> None:
    await apply(world, site, **MERGED, git={"statusOnOthers": True, "mergeMethod": "squash"})
    assert await judged(world, "True")
    written = [line for line in site.written() if not line.endswith("/0") and "graphql" not in line]
    assert not written
    assert 1 <= len(site.lines()) <= 8
    site.forget()
    await world.idle(timedelta(minutes=4))
    assert not [line for line in site.lines() if "state=open" not in line and not line.startswith("GET /pulls")]


@pytest.mark.virtual_time("lives through the back-off")
@EVERYWHERE
@pytest.mark.parametrize("spec", [DIRECT, REVIEWED])
async def test_an_archived_repository_is_said_so_until_it_is_none(
    world: World, site: Site, spec: dict[str, Any]
) -> None:
    archive(site)
    await apply(world, site, **spec)
    told = await judged(world, "False", reason="RepositoryArchived")
    assert told == f"git.url: {site.url} is archived: unarchive it, or name another repository"
    archive(site, archived=False)
    assert await judged(world, "True")


@EVERYWHERE
async def test_pull_requests_that_are_switched_off_are_told_where_an_environment_needs_them(
    world: World, site: Site
) -> None:
    switch_pull_requests_off(site)
    await apply(world, site, **REVIEWED)
    told = await judged(world, "False", reason="PullRequestsDisabled")
    assert (
        told
        == f"git.url: pull requests are switched off at {site.url}: switch them on, or use approval: auto without pr"
    )


@EVERYWHERE
async def test_permissions_that_the_token_lacks_are_named(world: World, site: Site) -> None:
    lacks = narrow_token(site)
    await apply(world, site, **REVIEWED)
    assert await judged(world, "False", reason="PermissionMissing") == (
        f"git.secretRef: the token lacks {lacks}: give it that"
    )
    assert not site.proposals()


@EVERYWHERE
async def test_nothing_is_asked_that_the_environments_do_not_need(world: World, site: Site) -> None:
    narrow_token(site)
    switch_pull_requests_off(site)
    forbid(site, "squash")
    await apply(world, site, **DIRECT, git={"mergeMethod": "squash"})
    assert await judged(world, "True")


async def test_a_token_that_only_git_takes_is_enough_where_only_git_is_needed(world: World, site: Site) -> None:
    assert isinstance(site, GiteaSite)
    site.fake.rights.scopes = set()
    await apply(world, site, **DIRECT)
    assert await judged(world, "True")


@EVERYWHERE
async def test_a_way_to_merge_that_the_settings_forbid_is_told(world: World, site: Site) -> None:
    forbid(site, "squash")
    await apply(world, site, **MERGED, git={"mergeMethod": "squash"})
    told = await judged(world, "False", reason="MergeMethodForbidden")
    assert f"git.mergeMethod: the settings of {site.url} forbid squash: choose merge" in told


@EVERYWHERE
async def test_a_protected_branch_is_told_where_it_is_pushed_to(world: World, site: Site) -> None:
    protect(site, "main")
    await apply(world, site, **DIRECT)
    assert await judged(world, "False", reason="BranchProtected") == (
        f"environment {PROD}: branch main is protected, and the credential may not push to it: "
        "let its user in the protection of the branch, or use pr: true"
    )


@EVERYWHERE
async def test_a_protected_branch_is_no_problem_where_people_merge(world: World, site: Site) -> None:
    protect(site, "main")
    await apply(world, site, **REVIEWED)
    assert await judged(world, "True")


async def test_a_merge_list_without_kardinal_is_told(world: World, site: Site) -> None:
    assert isinstance(site, GiteaSite)
    site.fake.rights.protected["main"] = {"user_can_push": False, "user_can_merge": False}
    await apply(world, site, **MERGED)
    assert "the credential may not merge into it" in await judged(world, "False", reason="BranchProtected")


async def test_every_problem_is_told_at_once(world: World, site: Site) -> None:
    lacks = narrow_token(site)
    forbid(site, "rebase")
    assert isinstance(site, GiteaSite)
    await apply(world, site, **MERGED, git={"mergeMethod": "rebase"})
    told = await judged(world, "False", reason="PermissionMissing")
    assert lacks in told
    assert "forbid rebase" in told


GITHUB = pytest.mark.parametrize("site", [pytest.param("github", marks=pytest.mark.every_host)], indirect=True)


@GITHUB
@pytest.mark.parametrize(
    ("bypass", "status"), [("always", "True"), ("pull_requests_only", "False"), ("never", "False")]
)
async def test_a_ruleset_of_github_that_may_be_bypassed_holds_nothing(
    world: World, site: Site, bypass: str, status: str
) -> None:
    assert isinstance(site, GitHubSite)
    site.project.rulesets[42] = Ruleset("main", ("required_status_checks",), bypass)
    await apply(world, site, **DIRECT)
    await judged(world, status)


@GITHUB
async def test_a_branch_of_github_with_a_protection_of_its_own_is_told(world: World, site: Site) -> None:
    assert isinstance(site, GitHubSite)
    site.project.unpushable.add("main")
    await apply(world, site, **DIRECT)
    assert "branch main is protected" in await judged(world, "False", reason="BranchProtected")


@GITHUB
@pytest.mark.parametrize(("scopes", "status"), [("repo, read:org", "True"), ("public_repo", "False"), ("", "False")])
async def test_a_classic_token_of_github_needs_its_scope(world: World, site: Site, scopes: str, status: str) -> None:
    assert isinstance(site, GitHubSite)
    site.server.identities[PASSWORD] = replace(site.server.identities[PASSWORD], scopes=scopes)
    await apply(world, site, **REVIEWED)
    told = await judged(world, status)
    assert (told == "git.secretRef: the token lacks repo: give it that") == (status == "False")


async def test_a_host_that_is_down_is_asked_again(world: World, site: Site) -> None:
    assert isinstance(site, GiteaSite)
    site.fake.outage = lambda request: (502, {"message": "bad gateway"})
    await apply(world, site, **REVIEWED, git={})
    assert "502" in await judged(world, "False", reason="HostUnavailable")
    site.fake.outage = lambda request: None
    assert await judged(world, "True")
