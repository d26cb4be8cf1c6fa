"""Settings that keep a credential from promoting, at each kind of host."""

from __future__ import annotations

from dataclasses import replace

from kardinal.scm import MergeMethod
from tests.agent.sites import GiteaSite, GitHubSite, GitLabSite, Site
from tests.hosts.fakes.github_state import Ruleset
from tests.support.smart_server import PASSWORD

__all__ = ["archive", "forbid", "narrow_token", "protect", "switch_pull_requests_off"]


def archive(site: Site, *, archived: bool = True) -> None:
    if isinstance(site, GiteaSite):
        site.fake.rights.settings["archived"] = archived
    elif isinstance(site, GitHubSite | GitLabSite):
        site.project.archived = archived


def switch_pull_requests_off(site: Site) -> None:
    if isinstance(site, GiteaSite):
        site.fake.rights.settings["has_pull_requests"] = False
    elif isinstance(site, GitHubSite):
        site.project.has_pull_requests = False
    elif isinstance(site, GitLabSite):
        site.project.merge_requests_access_level = "disabled"


def narrow_token(site: Site) -> str:
    """Take from the token what pull requests need; return what it lacks then, in the words of the host."""
    if isinstance(site, GiteaSite):
        site.fake.rights.scopes = {"write:repository"}
        return "write:issue, read:user"
    if isinstance(site, GitHubSite):
        identity = site.server.identities[PASSWORD]
        kept = {name: level for name, level in identity.permissions.items() if name in ("contents", "metadata")}
        site.server.identities[PASSWORD] = replace(identity, permissions=kept)
        return "Pull requests: read and write, Commit statuses: read and write"
    assert isinstance(site, GitLabSite)
    site.project.scopes = ["read_api", "write_repository"]
    return "api"


def forbid(site: Site, method: MergeMethod) -> None:
    """Let the settings of the repository forbid one way to merge."""
    if isinstance(site, GiteaSite):
        allowed = {"allow_merge_commits": "merge", "allow_squash_merge": "squash", "allow_rebase": "rebase"}
        site.fake.rights.settings |= {name: one != method for name, one in allowed.items()}
    elif isinstance(site, GitHubSite):
        site.project.methods.discard(method)
    elif isinstance(site, GitLabSite):
        assert method == "squash"
        site.project.squash_option = "never"


def protect(site: Site, branch: str) -> None:
    """Let a branch be protected from pushes of kardinal's user."""
    if isinstance(site, GiteaSite):
        site.fake.rights.protected[branch] = {"user_can_push": False}
    elif isinstance(site, GitHubSite):
        site.project.rulesets[42] = Ruleset(branch, ("non_fast_forward", "pull_request"))
    elif isinstance(site, GitLabSite):
        site.project.unpushable.add(branch)
