"""A fake GitHub: Enterprise Server's addresses, answers as GitHub's OpenAPI and GraphQL descriptions publish them.

Every request and every answer is held against the descriptions; what differs is a problem, and fails the test. Texts of
refusals are those that GitHub is known to answer with.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
from aiohttp import web

from tests.hosts.fakes.github_graphql import answer_query
from tests.hosts.fakes.github_operations import OPERATIONS, Call, refuse
from tests.hosts.fakes.github_state import ROBOT, App, Identity, Project
from tests.hosts.fakes.github_views import View
from tests.hosts.fakes.openapi import Description
from tests.hosts.fakes.repository import HostedRepository
from tests.hosts.fakes.server import HostServer, Refusal, Reply
from tests.support.secret_values import secret_value

__all__ = ["EVERYTHING", "TOKEN", "FakeGitHub"]

API = "/api/v3"
EVERYTHING = {"metadata": "read", "contents": "write", "pull_requests": "write", "issues": "write", "statuses": "write"}
LIMIT = 5000
PER_PAGE = 30
TOKEN = secret_value("ghp_robot")


class FakeGitHub(HostServer):
    """GitHub Enterprise Server with one repository."""

    def __init__(self, root: Path, certificate: Path, descriptions: Path, *, now: Callable[[], datetime]) -> None:
        super().__init__(root, certificate, now=now)
        self._description = Description.load(descriptions / "github.json")
        self._schema = descriptions / "github.graphql"
        git = HostedRepository.at(root / "acme" / "config.git")
        self.project = Project("acme", "config", git, now)
        self.identities: dict[str, Identity] = {}
        self.app: App | None = None
        self.remaining = LIMIT
        self.graphql_remaining = LIMIT
        self.grant(TOKEN, ROBOT)

    def grant(self, token: str, login: str, permissions: dict[str, str] | None = None) -> None:
        """Let a token in."""
        self.identities[token] = Identity(login, dict(EVERYTHING if permissions is None else permissions))

    def install(self, identifier: int, public_key: str) -> App:
        """Install an App on the repository."""
        self.app = App(identifier, "kardinal", public_key, 77, dict(EVERYTHING))
        return self.app

    def may_use_git(self, password: str, *, write: bool) -> bool:
        identity = self._identity(password)
        return identity is not None and identity.may("contents", "write" if write else "read")

    def routes(self) -> list[web.RouteDef]:
        templates = {template for _, template in OPERATIONS}
        return [
            *(web.route("*", f"{API}{_pattern(template)}", self.handle, name=None) for template in sorted(templates)),
            web.post("/api/graphql", self.handle),
        ]

    def snapshot(self) -> Callable[[], None]:
        kept = copy.deepcopy({**vars(self.project), "now": None})
        branches = self.project.git.branches()

        def restore() -> None:
            vars(self.project).update({**kept, "now": self.now})
            self.project.git.restore(branches)

        return restore

    async def answer(self, request: web.Request, body: Any) -> Reply:
        if request.path == "/api/graphql":
            identity = self._authenticated(request)
            self.graphql_remaining -= 1
            return Reply(200, answer_query(self._schema, self.project, identity, body), self._quota("graphql"))
        resource = request.match_info.route.resource
        assert resource is not None
        template = resource.canonical.removeprefix(API)
        operation = self._description.operation(request.method, template)
        if operation is None or (request.method, template) not in OPERATIONS:
            self.problems.append(f"{request.method} {template}: GitHub or its fake has no such operation")
            raise refuse(404, "Not Found")
        where = f"{request.method} {request.path}"
        wrong = self._description.request_problems(operation, query=request.query, body=body)
        self.problems += [f"{where}: {problem}" for problem in wrong]
        reply = self._performed(request, template, body)
        if reply.status < 300 and reply.body is not None:
            reply = Reply(reply.status, self._description.completed(operation, reply.status, reply.body), reply.headers)
        wrong = self._description.answer_problems(operation, reply.status, reply.body)
        self.problems += [f"{where} answered {reply.status}: {problem}" for problem in wrong]
        return self._conditional(request, reply)

    def _performed(self, request: web.Request, template: str, body: Any) -> Reply:
        permission, level, perform = OPERATIONS[request.method, template]
        try:
            identity = self._authenticated(request)
            if permission != "app" and not identity.may(permission, level):
                headers = {"X-Accepted-GitHub-Permissions": f"{permission}={level}"}
                raise refuse(403, "Resource not accessible by personal access token", headers=headers)
            values = {name: value for name, value in request.match_info.items() if name != "other"}
            if (
                values.get("owner", self.project.owner) != self.project.owner
                or values.get("repo", "config") != "config"
            ):
                raise refuse(404, "Not Found")
            view = View(self.project, url=self.url)
            reply = perform(Call(self, self.project, view, identity, values, dict(request.query), body or {}))
            if identity.scopes is None:
                return reply
            return Reply(reply.status, reply.body, {**reply.headers, "X-OAuth-Scopes": identity.scopes})
        except Refusal as refusal:
            return refusal.reply

    def _conditional(self, request: web.Request, reply: Reply) -> Reply:
        """Answer 304 where the client has it already, which costs nothing of its quota."""
        if request.method != "GET" or reply.status != 200:
            self.remaining -= 1
            return Reply(reply.status, reply.body, {**reply.headers, **self._quota()})
        tag = f'W/"{hashlib.sha256(json.dumps(reply.body).encode()).hexdigest()}"'
        headers = {**reply.headers, **self._quota(), "ETag": tag}
        if request.headers.get("If-None-Match") == tag:
            return Reply(304, None, headers)
        self.remaining -= 1
        return Reply(200, reply.body, headers)

    def _quota(self, resource: str = "core") -> dict[str, str]:
        reset = int((self.now() + timedelta(hours=1)).timestamp())
        return {
            "X-RateLimit-Limit": str(LIMIT),
            "X-RateLimit-Remaining": str(self.remaining if resource == "core" else self.graphql_remaining),
            "X-RateLimit-Resource": resource,
            "X-RateLimit-Reset": str(reset),
        }

    def _authenticated(self, request: web.Request) -> Identity:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if request.headers.get("User-Agent", "") == "":
            raise refuse(
                403, "Request forbidden by administrative rules. Please make sure your request has a User-Agent"
            )
        if scheme.lower() not in ("token", "bearer"):
            raise refuse(401, "Requires authentication")
        identity = self._app_identity(token) if token.count(".") == 2 else self._identity(token)
        if identity is None:
            raise refuse(401, "Bad credentials")
        return identity

    def _identity(self, token: str) -> Identity | None:
        identity = self.identities.get(token)
        expired = identity is not None and identity.expires_at is not None and identity.expires_at <= self.now()
        return None if expired else identity

    def _app_identity(self, token: str) -> Identity | None:
        if self.app is None:
            return None
        try:
            claims = jwt.decode(token, self.app.public_key, algorithms=["RS256"])
        except jwt.PyJWTError:
            return None
        long = claims["exp"] - claims["iat"] > 600
        return (
            None
            if long or claims["iss"] not in (str(self.app.identifier), self.app.client_id)
            else Identity(self.app.slug, {}, app=self.app.identifier)
        )


def _pattern(template: str) -> str:
    """Let a branch or reference in a path have slashes."""
    for name in ("ref", "branch", "basehead"):
        template = template.replace(f"{{{name}}}", f"{{{name}:.+}}")
    return template
