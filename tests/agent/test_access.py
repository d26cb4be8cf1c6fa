"""A Pipeline says what its host will not let promotions do, before the first of them needs it."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from kardinal.promotion.api import Pipeline
from kardinal.promotion.steps.sequence import planned
from kardinal_agent.pipeline_steps import steps_of
from kardinal_agent.readiness.access import AccessProblem, check_access
from kardinal_agent.remotes import Remote
from tests.agent.hosted import git_secret
from tests.agent.promotion_steps import start_agent
from tests.agent.rights import archive, forbid, narrow_token, protect, switch_pull_requests_off
from tests.agent.sites import EVERYWHERE, GiteaSite, GitHubSite, Site
from tests.agent.test_readiness import judged
from tests.agent.without_server import remote_of
from tests.hosts.fakes.github_state import Ruleset
from tests.support.clock import VirtualClock
from tests.support.names import PROD
from tests.support.objects import environment, pipeline
from tests.support.registry import REGISTRY
from tests.support.smart_server import PASSWORD
from tests.support.world import World

DIRECT: dict[str, Any] = {}
REVIEWED: dict[str, Any] = {"approval": "pr-review"}
MERGED: dict[str, Any] = {"pr": True}
FINE = ("", "")


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
async def test_an_archived_repository_is_said_so_until_it_is_none(world: World, site: Site) -> None:
    archive(site)
    await apply(world, site, **DIRECT)
    message = await judged(world, "False", reason="RepositoryArchived")
    assert message.startswith(f"git.url: {site.url} is archived")
    archive(site, archived=False)
    assert await judged(world, "True")


async def test_a_host_that_is_down_is_asked_again(world: World, site: Site) -> None:
    assert isinstance(site, GiteaSite)
    site.fake.outage = lambda request: (502, {"message": "bad gateway"})
    await apply(world, site, **REVIEWED, git={})
    assert "502" in await judged(world, "False", reason="HostUnavailable")
    site.fake.outage = lambda request: None
    assert await judged(world, "True")


@pytest.fixture
async def remote(site: Site, clock: VirtualClock, tmp_path: Path) -> AsyncIterator[Remote]:
    async with remote_of(site, tmp_path / "cache", clock=clock) as found:
        yield found


async def told(remote: Remote, site: Site, *, git: dict[str, Any] | None = None, **spec: Any) -> tuple[str, str]:
    """Return reason and message of what a Pipeline with one environment lacks at the host; empty if nothing."""
    made = pipeline(site.url, provider=site.provider, environments=[environment(PROD, **spec)])
    made["spec"]["git"] |= git or {}
    parsed = Pipeline.model_validate(made)
    promotions = [(step, planned(step.spec.steps, REGISTRY.steps)) for step in steps_of(parsed, [PROD])]
    try:
        await check_access(remote, promotions, statuses=parsed.spec.git.status_on_others)
    except AccessProblem as problem:
        return problem.reason, str(problem)
    return "", ""


@EVERYWHERE
async def test_an_archived_repository_is_told_alone(remote: Remote, site: Site) -> None:
    archive(site)
    archived = "RepositoryArchived", f"git.url: {site.url} is archived: unarchive it, or name another repository"
    for spec in (DIRECT, REVIEWED):
        assert await told(remote, site, **spec) == archived


@EVERYWHERE
async def test_pull_requests_that_are_switched_off_are_told_where_an_environment_needs_them(
    remote: Remote, site: Site
) -> None:
    switch_pull_requests_off(site)
    assert await told(remote, site, **REVIEWED) == (
        "PullRequestsDisabled",
        f"git.url: pull requests are switched off at {site.url}: switch them on, or use approval: auto without pr",
    )


@EVERYWHERE
async def test_permissions_that_the_token_lacks_are_named(remote: Remote, site: Site) -> None:
    lacks = narrow_token(site)
    assert await told(remote, site, **REVIEWED) == (
        "PermissionMissing",
        f"git.secretRef: the token lacks {lacks}: give it that",
    )
    assert not site.proposals()


@EVERYWHERE
async def test_nothing_is_asked_that_the_environments_do_not_need(remote: Remote, site: Site) -> None:
    narrow_token(site)
    switch_pull_requests_off(site)
    forbid(site, "squash")
    assert await told(remote, site, **DIRECT, git={"mergeMethod": "squash"}) == FINE


async def test_a_token_that_only_git_takes_is_enough_where_only_git_is_needed(remote: Remote, site: Site) -> None:
    assert isinstance(site, GiteaSite)
    site.fake.rights.scopes = set()
    assert await told(remote, site, **DIRECT) == FINE


@EVERYWHERE
async def test_a_way_to_merge_that_the_settings_forbid_is_told(remote: Remote, site: Site) -> None:
    forbid(site, "squash")
    reason, message = await told(remote, site, **MERGED, git={"mergeMethod": "squash"})
    assert reason == "MergeMethodForbidden"
    assert f"git.mergeMethod: the settings of {site.url} forbid squash: choose merge" in message


@EVERYWHERE
async def test_a_protected_branch_is_told_where_it_is_pushed_to(remote: Remote, site: Site) -> None:
    protect(site, "main")
    assert await told(remote, site, **DIRECT) == (
        "BranchProtected",
        f"environment {PROD}: branch main is protected, and the credential may not push to it: "
        "let its user in the protection of the branch, or use pr: true",
    )


@EVERYWHERE
async def test_a_protected_branch_is_no_problem_where_people_merge(remote: Remote, site: Site) -> None:
    protect(site, "main")
    assert await told(remote, site, **REVIEWED) == FINE


async def test_a_merge_list_without_kardinal_is_told(remote: Remote, site: Site) -> None:
    assert isinstance(site, GiteaSite)
    site.fake.rights.protected["main"] = {"user_can_push": False, "user_can_merge": False}
    reason, message = await told(remote, site, **MERGED)
    assert reason == "BranchProtected"
    assert "the credential may not merge into it" in message


async def test_every_problem_is_told_at_once(remote: Remote, site: Site) -> None:
    lacks = narrow_token(site)
    forbid(site, "rebase")
    assert isinstance(site, GiteaSite)
    reason, message = await told(remote, site, **MERGED, git={"mergeMethod": "rebase"})
    assert reason == "PermissionMissing"
    assert lacks in message
    assert "forbid rebase" in message


GITHUB = pytest.mark.parametrize("site", [pytest.param("github", marks=pytest.mark.every_host)], indirect=True)


@GITHUB
@pytest.mark.parametrize(("bypass", "fine"), [("always", True), ("pull_requests_only", False), ("never", False)])
async def test_a_ruleset_of_github_that_may_be_bypassed_holds_nothing(
    remote: Remote, site: Site, bypass: str, fine: bool
) -> None:
    assert isinstance(site, GitHubSite)
    site.project.rulesets[42] = Ruleset("main", ("required_status_checks",), bypass)
    assert (await told(remote, site, **DIRECT) == FINE) is fine


@GITHUB
async def test_a_branch_of_github_with_a_protection_of_its_own_is_told(remote: Remote, site: Site) -> None:
    assert isinstance(site, GitHubSite)
    site.project.unpushable.add("main")
    reason, message = await told(remote, site, **DIRECT)
    assert reason == "BranchProtected"
    assert "branch main is protected" in message


@GITHUB
@pytest.mark.parametrize(("scopes", "fine"), [("repo, read:org", True), ("public_repo", False), ("", False)])
async def test_a_classic_token_of_github_needs_its_scope(remote: Remote, site: Site, scopes: str, fine: bool) -> None:
    assert isinstance(site, GitHubSite)
    site.server.identities[PASSWORD] = replace(site.server.identities[PASSWORD], scopes=scopes)
    reason, message = await told(remote, site, **REVIEWED)
    assert (reason, "lacks repo:" in message) == (("", False) if fine else ("PermissionMissing", True))


@pytest.mark.parametrize("site", [pytest.param("github", marks=pytest.mark.every_host)], indirect=True)
async def test_an_app_that_may_ask_no_teams_is_told_where_the_pipeline_wants_them(world: World, site: Site) -> None:
    assert isinstance(site, GitHubSite)
    key = rsa.generate_private_key(65537, 2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    site.server.install(4711, public)
    await apply(world, site, **REVIEWED, git={"pullRequest": {"teamReviewers": ["platform"]}})
    assert await judged(world, "True")
    secret = git_secret(site)
    values = {"appId": "4711", "privateKey": private}
    secret["data"] = {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}
    changed = pipeline(site.url, provider=site.provider, environments=[environment(PROD, **REVIEWED)])
    changed["spec"]["git"] |= {"secretRef": {"name": "git"}, "pullRequest": {"teamReviewers": ["acme/platform"]}}
    await world.apply(secret, changed)
    assert "Members: read" in await judged(world, "False", reason="PermissionMissing")
