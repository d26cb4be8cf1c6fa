"""The rights of a credential at Gitea and Forgejo: of its user, from the settings; of its token, by trying.

No request shows the scopes of a token. The host checks them before it looks up the object of a request. So a request
about pull request 0 or comment 0, which do not exist, is refused with 403 if a scope is missing, and answered with 404
otherwise.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pydantic import BaseModel

from kardinal.scm.addresses import quoted
from kardinal.scm.base import BranchAccess, HostAccess, Need
from kardinal.scm.errors import AccessDenied, PullRequestNotFound
from kardinal.scm.gitea_values import ApiRepository
from kardinal.scm.http import HostClient
from kardinal.scm.values import parsed

__all__ = ["GiteaAccess"]


class ApiBranchRights(BaseModel):
    user_can_push: bool | None = None
    user_can_merge: bool | None = None


class GiteaAccess:
    """The rights of one credential on one repository."""

    def __init__(self, client: HostClient, path: str) -> None:
        self._client = client
        self._path = path

    async def repository(self) -> ApiRepository:
        return parsed(ApiRepository, (await self._client.request("access", "GET", self._path)).value)

    async def access(self, needs: Collection[Need]) -> HostAccess:
        """Return the rights; the scopes for `needs` are tried only if the settings allow pull requests at all."""
        access = (await self.repository()).access()
        if access.archived or not access.pull_requests:
            return access
        lacks = []
        if needs and not await self._has_scope("update", "PATCH", f"{self._path}/pulls/0", {"title": "none"}):
            lacks.append("update")
        if "pull-requests" in needs:
            comment = f"{self._path}/issues/comments/0"
            if not await self._has_scope("comment", "PATCH", comment, {"body": "none"}):
                lacks.append("comment")
            if not await self._has_scope("user", "GET", "/user", None):
                lacks.append("user")
        return replace(access, lacks=tuple(self._client.host.permissions[operation] for operation in lacks))

    async def branch_access(self, branch: str) -> BranchAccess:
        """Return the rights of the user on a branch, from its protection."""
        answer = await self._client.request("branch", "GET", f"{self._path}/branches/{quoted(branch)}")
        if answer.status == 404:
            return BranchAccess()
        rights = parsed(ApiBranchRights, answer.value)
        return BranchAccess(push=rights.user_can_push, merge=rights.user_can_merge)

    async def _has_scope(self, operation: str, method: str, path: str, body: object) -> bool:
        try:
            await self._client.request(operation, method, path, body=body)
        except PullRequestNotFound:
            return True
        except AccessDenied as error:
            if error.status == 403:
                return False
            raise
        return True
