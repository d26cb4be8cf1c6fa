"""A fake GitLab over a real repository, made from what GitLab documents.

GitLab's OpenAPI description is in no registry of packages, so nothing here is held against one. Each operation names
the page that it follows, and the parameters that the page lists; a parameter that is not there is a problem.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from tests.hosts.fakes.gitlab_operations import OPERATIONS, Call, refuse
from tests.hosts.fakes.gitlab_state import ROBOT, Project
from tests.hosts.fakes.repository import HostedRepository
from tests.hosts.fakes.server import HostServer, Refusal, Reply
from tests.support.secret_values import secret_value

__all__ = ["TOKEN", "FakeGitLab"]

API = "/api/v4"
PATH = "acme/teams/config"
TOKEN = secret_value("glpat-robot")


class FakeGitLab(HostServer):
    """A GitLab of one's own with one project, in a subgroup."""

    def __init__(self, root: Path, certificate: Path, *, now: Callable[[], datetime]) -> None:
        super().__init__(root, certificate, now=now)
        self.project = Project(PATH, HostedRepository.at(root / f"{PATH}.git"), now)
        self.tokens = {TOKEN: ROBOT}

    def may_use_git(self, password: str, *, write: bool) -> bool:
        return password in self.tokens

    def routes(self) -> list[web.RouteDef]:
        templates = sorted({template for _, template in OPERATIONS})
        return [web.route("*", f"{API}{template}", self.handle) for template in templates]

    def snapshot(self) -> Callable[[], None]:
        kept = copy.deepcopy({**vars(self.project), "now": None})
        branches = self.project.git.branches()

        def restore() -> None:
            vars(self.project).update({**kept, "now": self.now})
            self.project.git.restore(branches)

        return restore

    async def answer(self, request: web.Request, body: Any) -> Reply:
        resource = request.match_info.route.resource
        assert resource is not None
        operation = OPERATIONS.get((request.method, resource.canonical.removeprefix(API)))
        if operation is None:
            self.problems.append(f"{request.method} {request.path}: the fake host has no such operation")
            raise refuse(405, "405 Method Not Allowed")
        sent = {*request.query, *(body or {})}
        self.problems += [
            f"{request.method} {request.path}: {operation.page} has no parameter {name}"
            for name in sorted(sent - operation.parameters)
        ]
        user = self.tokens.get(request.headers.get("PRIVATE-TOKEN", ""))
        if user is None:
            raise refuse(401, "401 Unauthorized")
        values = dict(request.match_info)
        # The id of a project is its path with every slash escaped, and nothing else is found.
        if "id" in values and (unquote(values["id"]) != PATH or f"/{PATH.replace('/', '%2F')}" not in request.raw_path):
            raise refuse(404, "404 Project Not Found")
        call = Call(self.project, user, self.url, values, dict(request.query), body or {})
        try:
            return operation.perform(call)
        except Refusal as refusal:
            return refusal.reply
