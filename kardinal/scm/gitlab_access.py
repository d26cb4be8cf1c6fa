"""The rights of a credential at GitLab: of its user, from the project; of its token, from GitLab's report about it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pydantic import BaseModel

from kardinal.scm.addresses import quoted
from kardinal.scm.base import BranchAccess, HostAccess, Need
from kardinal.scm.errors import AccessDenied
from kardinal.scm.gitlab_values import ApiProject
from kardinal.scm.http import HostClient
from kardinal.scm.values import parsed

__all__ = ["GitLabAccess"]

_SCOPE = "api"


class ApiToken(BaseModel):
    scopes: list[str] | None = None


class ApiBranchRights(BaseModel):
    can_push: bool | None = None


class GitLabAccess:
    """The rights of one credential on one project."""

    def __init__(self, client: HostClient, path: str) -> None:
        self._client = client
        self._path = path

    async def project(self) -> ApiProject:
        return parsed(ApiProject, (await self._client.request("access", "GET", self._path)).value)

    async def access(self, needs: Collection[Need]) -> HostAccess:
        """Return the rights; the scopes of the token are requested only if there are `needs`."""
        access = (await self.project()).access()
        if not needs or access.archived or not access.pull_requests:
            return access
        scopes = await self._scopes()
        return replace(access, lacks=() if scopes is None or _SCOPE in scopes else (_SCOPE,))

    async def branch_access(self, branch: str) -> BranchAccess:
        """Return whether the user may push to a branch; members cannot see who may merge into a protected branch."""
        answer = await self._client.request("branch", "GET", f"{self._path}/repository/branches/{quoted(branch)}")
        if answer.status == 404:
            return BranchAccess()
        return BranchAccess(push=parsed(ApiBranchRights, answer.value).can_push)

    async def _scopes(self) -> list[str] | None:
        """Return the scopes of the token; None if GitLab does not report them, for example for an OAuth token.

        https://docs.gitlab.com/api/personal_access_tokens/#get-details-on-a-personal-access-token
        """
        try:
            answer = await self._client.request("token", "GET", "/personal_access_tokens/self")
        except AccessDenied:
            return None
        return parsed(ApiToken, answer.value).scopes
