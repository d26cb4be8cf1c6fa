"""The rights of a credential at GitHub, as far as GitHub reports them.

A GitHub App knows the permissions of its token. The scopes of a classic token are in a header of every answer
(`X-OAuth-Scopes: repo`). Nothing is reported about a fine-grained token: a forbidden read is refused, and a forbidden
write is noticed only when writing.

A branch is protected by rulesets, which list who may bypass them, or by a rule of its own, for which GraphQL reports
whether the viewer may push.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final, Literal

from pydantic import BaseModel

from kardinal.scm.addresses import quoted
from kardinal.scm.base import BranchAccess, HostAccess, Need
from kardinal.scm.errors import AccessDenied, HostError
from kardinal.scm.github_app import AppAuthenticator
from kardinal.scm.github_values import ApiRepository
from kardinal.scm.http import HostClient
from kardinal.scm.values import parsed

__all__ = ["GitHubAccess"]

_APP: Mapping[Need, str] = {"pull-requests": "pull_requests", "statuses": "statuses", "teams": "members"}
"""Need -> the permission of an App."""
_ENOUGH: Mapping[Need, tuple[str, ...]] = {
    "pull-requests": ("write",),
    "statuses": ("write",),
    "teams": ("read", "write"),
}
"""Need -> the sufficient levels of that permission."""
_OPERATIONS: Mapping[Need, str] = {"pull-requests": "open", "statuses": "set-status", "teams": "team-reviewers"}
"""Need -> the operation whose permission is named as missing."""
_RULES: Final = 100
_RULESETS: Final = 8
"""The most rulesets of a branch that are examined."""
_UPDATES = frozenset({"update", "pull_request", "required_status_checks", "merge_queue", "workflows"})
"""Rules that keep a pushed commit from getting onto the branch."""

_VIEWER = """\
query($owner: String!, $name: String!, $ref: String!) {
  repository(owner: $owner, name: $name) { ref(qualifiedName: $ref) { refUpdateRule { viewerCanPush } } }
}"""


class ApiRule(BaseModel):
    type: str
    ruleset_id: int | None = None


class ApiRuleset(BaseModel):
    current_user_can_bypass: Literal["always", "exempt", "pull_requests_only", "never"] | None = None


class ApiUpdateRule(BaseModel):
    viewerCanPush: bool  # noqa: N815 - the host's spelling


class ApiRef(BaseModel):
    refUpdateRule: ApiUpdateRule | None = None  # noqa: N815


class ApiRefOfRepository(BaseModel):
    ref: ApiRef | None = None


class ApiViewer(BaseModel):
    repository: ApiRefOfRepository


class GitHubAccess:
    """The rights of one credential on one repository."""

    def __init__(
        self, client: HostClient, graphql: HostClient, *, owner: str, name: str, path: str, app: AppAuthenticator | None
    ) -> None:
        self._client = client
        self._graphql = graphql
        self._variables = {"owner": owner, "name": name}
        self._path = path
        self._app = app

    async def access(self, needs: Collection[Need], *, age: float | None) -> HostAccess:
        """Return the rights; permissions for `needs` are checked only if the settings allow pull requests at all."""
        granted = await self._app.permissions() if self._app else None
        answer = await self._client.request("access", "GET", self._path, age=age)
        repository = parsed(ApiRepository, answer.value)
        access = repository.access(granted)
        if access.archived or not access.pull_requests:
            return access
        if granted is not None:
            missing = [need for need in needs if granted.get(_APP[need]) not in _ENOUGH[need]]
        elif "x-oauth-scopes" in answer.headers:
            scopes = {scope.strip() for scope in answer.headers["x-oauth-scopes"].split(",")}
            enough = {"repo"} if repository.private else {"repo", "public_repo"}
            return replace(access, lacks=("repo",) if needs and not scopes & enough else ())
        else:
            # A token that may not see a team gets the same answer as for a team that does not exist.
            readable = [need for need in needs if need != "teams"]
            missing = [need for need in readable if not await self._reads(need, access.default_branch)]
        return replace(access, lacks=tuple(self._client.host.permissions[_OPERATIONS[need]] for need in missing))

    async def branch_access(self, branch: str) -> BranchAccess:
        """Return the rights that the rulesets and the protection of a branch give to the credential."""
        query = {"per_page": str(_RULES)}
        answer = await self._client.request(
            "rules", "GET", f"{self._path}/rules/branches/{quoted(branch)}", query=query
        )
        rules = [parsed(ApiRule, item) for item in answer.value] if isinstance(answer.value, list) else []
        held = {rule.ruleset_id for rule in rules if rule.type in _UPDATES and rule.ruleset_id is not None}
        bypasses = {ruleset: await self._bypass(ruleset) for ruleset in sorted(held)[:_RULESETS]}
        if any(bypass in ("never", "pull_requests_only") for bypass in bypasses.values()):
            closed = {rule.ruleset_id for rule in rules if rule.type == "update"}
            merge = False if any(bypasses.get(ruleset or 0) == "never" for ruleset in closed) else None
            return BranchAccess(push=False, merge=merge)
        return BranchAccess(push=await self._viewer_can_push(branch))

    async def _reads(self, need: Need, branch: str) -> bool:
        """Return whether the token may read the objects that it has to write."""
        try:
            if need == "pull-requests":
                await self._client.request("list", "GET", f"{self._path}/pulls", query={"per_page": "1"})
            else:
                path = f"{self._path}/commits/{quoted(branch)}/status"
                await self._client.request("statuses", "GET", path, query={"per_page": "1"})
        except AccessDenied as error:
            if error.status == 403:
                return False
            raise
        except HostError as error:
            if error.transient or error.status not in (404, 422):
                raise
        return True

    async def _bypass(self, ruleset: int) -> str | None:
        answer = await self._client.request("rules", "GET", f"{self._path}/rulesets/{ruleset}")
        return parsed(ApiRuleset, answer.value).current_user_can_bypass if answer.status != 404 else None

    async def _viewer_can_push(self, branch: str) -> bool | None:
        """Return GraphQL's answer about the branch's own rule; None without a rule, or if it is not reported."""
        body = {"query": _VIEWER, "variables": {**self._variables, "ref": f"refs/heads/{branch}"}}
        answer = await self._graphql.request("rules", "POST", "/graphql", body=body)
        value = answer.value if isinstance(answer.value, dict) else {}
        if value.get("errors") or not isinstance(value.get("data"), dict):
            return None
        ref = parsed(ApiViewer, value["data"]).repository.ref
        return ref.refUpdateRule.viewerCanPush if ref and ref.refUpdateRule else None
