"""A host with the API of Gitea in front of a real bare repository, for tests of the agent that must be quick.

What is proposed and merged is done by Git itself. `outage` is consulted before each request of the API and may answer
in its place. The contract suite of `tests/hosts` says what a real Gitea answers.
"""

from __future__ import annotations

import copy
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from kardinal.objects.conditions import format_time
from tests.support.gitea_state import Pull, Rights
from tests.support.repository import GitRepository
from tests.support.smart_server import PASSWORD, USER, Exchange, SmartServer, serving

__all__ = ["FakeGitea", "Pull", "Request", "fake_gitea", "fake_giteas"]

_OWNER = "acme"
_COMMENTS = 1_000
"""More than a pull request has: the ids of comments are counted over all of them."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request of the API as it came: the path is that below the repository."""

    method: str
    path: str
    body: dict[str, Any]


Reply = tuple[int, Any]


class FakeGitea:
    """One repository at a host; what people do is done by methods of this class."""

    provider = "gitea"

    def __init__(self, server: SmartServer, repository: GitRepository, now: Callable[[], datetime]) -> None:
        self.server = server
        self.repository = repository
        self._now = now
        self._lock = threading.RLock()
        self.pulls: dict[int, Pull] = {}
        self.labels: list[str] = []
        self.statuses: dict[str, dict[str, dict[str, str]]] = {}
        self.requests: list[Request] = []
        self.merge_methods: list[str] = []
        self.default_method = "merge"
        self.rights = Rights()
        self.members = ["alice", "bob"]
        self.teams = ["platform"]
        self.blocks_outdated = False
        self.listed: dict[str, list[str]] = {}
        """Commit -> files that are listed instead of those that differ."""
        self.outage: Callable[[Request], Reply | None] = lambda request: None
        """Answers in the place of the host, where it returns something."""

    @property
    def url(self) -> str:
        return f"{self.server.url}/{_OWNER}/{self.repository.path.name}"

    @property
    def host(self) -> str:
        return self.server.url.partition("://")[2]

    def asked(self, pattern: str) -> list[Request]:
        """Return the requests so far whose `METHOD path` matches a pattern."""
        return [one for one in self.requests if re.fullmatch(pattern, f"{one.method} {one.path}")]

    def propose(
        self, files: Mapping[str, str], *, head: str = "fix", base: str = "main", fork: bool = False
    ) -> tuple[int, str]:
        """Open a pull request as a person does, from a fork if told so; return its number and its commit."""
        with self._lock:
            number = len(self.pulls) + 1
            git = self.repository.git
            branch = f"fork-{number}" if fork else head
            git("update-ref", f"refs/heads/{branch}", base)
            commit = self.repository.commit(files, branch=branch)
            if fork:
                git("update-ref", f"refs/pull/{number}/head", commit)
                git("update-ref", "-d", f"refs/heads/{branch}")
            self.pulls[number] = Pull(number, "A fix", "", head, base, commit, self._now(), fork=fork)
            return number, commit

    def told(self, commit: str, context: str = "kardinal") -> tuple[str, str]:
        """Return state and description of a status of a commit."""
        with self._lock:
            found = self.statuses.get(commit, {}).get(context, {})
            return found.get("state", ""), found.get("description", "")

    def merge(self, number: int, *, by: str = "alice", method: str = "merge") -> str:
        """Merge as a person does; returns the commit on the base branch."""
        with self._lock:
            return self._land(self.pulls[number], by=by, method=method)

    def update_branch(self, number: int, *, by: str = "alice") -> str:
        """Merge the base into the head, as "Update branch" on the page does; return the commit."""
        with self._lock:
            pull = self.pulls[number]
            git = self.repository.git
            head = self._head(pull)
            base = self.repository.head(pull.base)
            tree = git("merge-tree", "--write-tree", head, base).splitlines()[0]
            author = ["-c", f"user.name={by}", "-c", f"user.email={by}@example.org"]
            text = f"Merge branch '{pull.base}' into {pull.head}"
            commit = git(*author, "commit-tree", tree, "-p", head, "-p", base, stdin=text)
            git("update-ref", f"refs/heads/{pull.head}", commit, head)
            return commit

    def approve(self, number: int, *, by: str) -> None:
        """Approve as a person does whose review counts."""
        with self._lock:
            moment = format_time(self._now())
            review = {"id": 1, "state": "APPROVED", "official": True, "submitted_at": moment, "user": {"login": by}}
            self.pulls[number].reviews.append(review)

    def close(self, number: int, *, by: str = "alice") -> None:
        with self._lock:
            pull = self.pulls[number]
            pull.state = "closed"
            pull.closed_by = by

    def retarget(self, number: int, base: str) -> None:
        with self._lock:
            self.pulls[number].base = base

    def status(self, number: int, context: str) -> tuple[str, str]:
        """Return state and description of a status of the head of a pull request."""
        with self._lock:
            found = self.statuses.get(self._head(self.pulls[number]), {}).get(context, {})
            return found.get("state", ""), found.get("description", "")

    def snapshot(self) -> Callable[[], None]:
        """Return what puts the state of the host back to what it is now."""
        kept = copy.deepcopy((self.pulls, self.labels, self.statuses))
        branches = {name: self.repository.head(name) for name in self.repository.branches()}

        def restore() -> None:
            self.pulls, self.labels, self.statuses = kept
            for name in set(self.repository.branches()) - branches.keys():
                self.repository.git("update-ref", "-d", f"refs/heads/{name}")
            for name, commit in branches.items():
                self.repository.git("update-ref", f"refs/heads/{name}", commit)

        return restore

    def handle(self, exchange: Exchange, path: str) -> bool:
        """Answer requests of the API; the others are Git's."""
        prefix = "/api/v1"
        api = path.startswith("/api/v1/")
        if not api:
            return self._refused_git(exchange)
        body = json.loads(exchange.body) if exchange.body else {}
        below = path.removeprefix(prefix).removeprefix(f"/repos/{_OWNER}/{self.repository.path.stem}")
        request = Request(exchange.command, below, body)
        with self._lock:
            self.requests.append(request)
            reply = self.outage(request) or self._authorised(exchange, request)
            if self.rights.settings["archived"] and request.method != "GET":
                reply = reply or (423, {"message": "Repo is archived"})
            reply = reply or self._reply(request)
        status, value = reply
        content = json.dumps(value).encode()
        exchange.send_response(status)
        exchange.send_header("Content-Type", "application/json")
        exchange.send_header("Content-Length", str(len(content)))
        exchange.end_headers()
        exchange.wfile.write(content)
        return True

    def _authorised(self, exchange: Exchange, request: Request) -> Reply | None:
        if exchange.headers.get("Authorization") != f"token {PASSWORD}":
            return 401, {"message": "invalid username, password or token"}
        return self.rights.refusal(request.method, request.path)

    def _reply(self, request: Request) -> Reply:
        for method, pattern, answer in (
            ("GET", "/user", self._user),
            ("GET", "", self._settings),
            ("GET", "/labels", self._list_labels),
            ("POST", "/labels", self._make_label),
            ("GET", "/pulls", self._list),
            ("POST", "/pulls", self._open),
            ("GET", r"/pulls/(\d+)", self._get),
            ("PATCH", r"/pulls/(\d+)", self._edit),
            ("POST", r"/pulls/(\d+)/merge", self._merge),
            ("POST", r"/pulls/(\d+)/update", self._update),
            ("GET", r"/pulls/(\d+)/files", self._files),
            ("GET", r"/pulls/(\d+)/reviews", self._reviews),
            ("GET", r"/pulls/([^/]+)/([^/]+)", self._find),
            ("GET", r"/issues/(\d+)/timeline", self._timeline),
            ("GET", r"/issues/(\d+)/comments", self._comments),
            ("POST", r"/issues/(\d+)/comments", self._comment),
            ("PATCH", r"/issues/comments/(\d+)", self._edit_comment),
            ("PUT", r"/issues/(\d+)/labels", self._label),
            ("POST", r"/issues/(\d+)/labels", self._add_labels),
            ("GET", r"/assignees", self._assignable),
            ("POST", r"/pulls/(\d+)/requested_reviewers", self._request_reviewers),
            ("GET", r"/branches/([^/]+)", self._branch),
            ("GET", r"/commits/(\w+)/status", self._statuses),
            ("POST", r"/statuses/(\w+)", self._set_status),
        ):
            found = re.fullmatch(pattern, request.path) if method == request.method else None
            if found:
                return answer(request, *found.groups())
        return 404, {"message": "not found"}

    def _refused_git(self, exchange: Exchange) -> bool:
        """Refuse a push to an archived repository; the other requests of Git are served."""
        if not self.rights.settings["archived"] or "git-receive-pack" not in exchange.path:
            return False
        exchange.send_error(403)
        return True

    def _user(self, request: Request) -> Reply:
        return 200, {"login": USER}

    def _settings(self, request: Request) -> Reply:
        settings = {"default_branch": "main", "default_merge_style": self.default_method}
        return 200, settings | {"permissions": {"pull": True, "push": True}} | self.rights.settings

    def _branch(self, request: Request, branch: str) -> Reply:
        name = branch.replace("%2F", "/")
        return (200, self.rights.branch(name)) if self.repository.find(name) else (404, {"message": "not found"})

    def _list_labels(self, request: Request) -> Reply:
        return 200, [{"id": index + 1, "name": name} for index, name in enumerate(self.labels)]

    def _make_label(self, request: Request) -> Reply:
        self.labels.append(request.body["name"])
        return 201, {"id": len(self.labels), "name": request.body["name"]}

    def _list(self, request: Request) -> Reply:
        return 200, [self.shown(pull) for pull in self.pulls.values() if pull.state == "open"]

    def _open(self, request: Request) -> Reply:
        body = request.body
        if any((one.head, one.state, one.fork) == (body["head"], "open", False) for one in self.pulls.values()):
            return 409, {"message": "pull request already exists for these targets"}
        tip = self.repository.find(body["head"])
        if tip is None:
            return 404, {"message": "head branch not found"}
        if self.repository.git("merge-base", tip, body["base"]) == tip:
            return 422, {"message": "There are no changes between the head and the base"}
        number = len(self.pulls) + 1
        pull = Pull(number, body["title"], body["body"], body["head"], body["base"], tip, self._now())
        pull.labels = body.get("labels") or []
        self.pulls[number] = pull
        return 201, self.shown(pull)

    def _get(self, request: Request, number: str) -> Reply:
        pull = self.pulls.get(int(number))
        return (200, self.shown(pull)) if pull else (404, {"message": "not found"})

    def _edit(self, request: Request, number: str) -> Reply:
        pull = self.pulls.get(int(number))
        if pull is None:
            return 404, {"message": "not found"}
        pull.sha = self._head(pull)
        for name in ("title", "body", "state", "assignees"):
            setattr(pull, name, request.body.get(name, getattr(pull, name)))
        return 201, self.shown(pull)

    def _merge(self, request: Request, number: str) -> Reply:
        pull = self.pulls[int(number)]
        if pull.is_draft:
            return 405, {"message": "Work in progress PRs cannot be merged"}
        if request.body.get("head_commit_id") not in (None, self._head(pull)):
            return 409, {"message": "head out of date"}
        if self.blocks_outdated and not self._is_up_to_date(pull):
            return 405, {"message": "not ready to merge: The head branch is behind the base branch"}
        method = request.body["Do"]
        title = request.body.get("MergeTitleField", "")
        self.merge_methods.append(method)
        message = f"{title}\n\n{request.body.get('MergeMessageField', '')}".strip() if title else ""
        try:
            self._land(pull, by=USER, method=method, message=message)
        except AssertionError:
            return 405, {"message": "Please try again later"}
        return 200, None

    def _update(self, request: Request, number: str) -> Reply:
        pull = self.pulls[int(number)]
        if self._is_up_to_date(pull):
            return 500, {"message": f"HeadBranch of PR {number} is up to date"}
        self.update_branch(pull.number, by=USER)
        return 200, None

    def _files(self, request: Request, number: str) -> Reply:
        pull = self.pulls[int(number)]
        head = self._head(pull)
        names = self.listed.get(head)
        if names is None:
            names = self.repository.git("diff", "--name-only", "--no-renames", f"{pull.base}...{head}").split()
        return 200, [
            {"filename": name, "status": "changed", "contents_url": f"{self.url}/contents/{name}?ref={head}"}
            for name in names
        ]

    def _reviews(self, request: Request, number: str) -> Reply:
        return 200, self.pulls[int(number)].reviews

    def _find(self, request: Request, base: str, head: str) -> Reply:
        wanted = head.replace("%2F", "/"), base.replace("%2F", "/")
        found = [pull for pull in self.pulls.values() if (pull.head, pull.base) == wanted and not pull.fork]
        return (200, self.shown(found[-1])) if found else (404, {"message": "not found"})

    def _timeline(self, request: Request, number: str) -> Reply:
        by = self.pulls[int(number)].closed_by
        return 200, [{"type": "label", "user": None}, *([{"type": "close", "user": {"login": by}}] if by else ())]

    def _comments(self, request: Request, number: str) -> Reply:
        pull = self.pulls[int(number)]
        return 200, [
            {"id": _COMMENTS * pull.number + index, "body": text, "user": {"login": USER}}
            for index, text in enumerate(pull.comments)
        ]

    def _comment(self, request: Request, number: str) -> Reply:
        self.pulls[int(number)].comments.append(request.body["body"])
        return 201, {"id": 1, "body": request.body["body"]}

    def _edit_comment(self, request: Request, identity: str) -> Reply:
        number, index = divmod(int(identity), _COMMENTS)
        if number not in self.pulls:
            return 404, {"message": "not found"}
        self.pulls[number].comments[index] = request.body["body"]
        return 200, {"id": int(identity), "body": request.body["body"]}

    def _label(self, request: Request, number: str) -> Reply:
        self.pulls[int(number)].labels = request.body["labels"]
        return 200, []

    def _add_labels(self, request: Request, number: str) -> Reply:
        labels = self.pulls[int(number)].labels
        labels += [one for one in request.body["labels"] if one not in labels]
        return 200, []

    def _assignable(self, request: Request) -> Reply:
        return 200, [{"login": name} for name in self.members]

    def _request_reviewers(self, request: Request, number: str) -> Reply:
        pull = self.pulls[int(number)]
        users = request.body.get("reviewers", [])
        teams = request.body.get("team_reviewers", [])
        for kind, names, known in (("User", users, self.members), ("Team", teams, self.teams)):
            unknown = [name for name in names if name not in known]
            if unknown:
                return 404, {"message": f"{kind} '{unknown[0]}' not exist"}
        pull.reviewers += [name for name in users if name not in pull.reviewers]
        pull.teams += [name for name in teams if name not in pull.teams]
        return 201, []

    def _statuses(self, request: Request, commit: str) -> Reply:
        return 200, {"statuses": [_stated(one) for one in self.statuses.get(commit, {}).values()]}

    def _set_status(self, request: Request, commit: str) -> Reply:
        self.statuses.setdefault(commit, {})[request.body["context"]] = request.body
        return 201, _stated(request.body)

    def _land(self, pull: Pull, *, by: str, method: str, message: str = "") -> str:
        """Merge in a work tree of its own, as a host does."""
        assert pull.state == "open"
        head = self._head(pull)
        base = self.repository.head(pull.base)
        git = self.repository.git
        tree = git("merge-tree", "--write-tree", base, head).splitlines()[0]
        parents = ["-p", base, *(["-p", head] if method == "merge" else [])]
        if method == "rebase":
            message = git("log", "-1", "--format=%B", head)
        message = message or f"{pull.title} (#{pull.number})"
        commit = git("commit-tree", tree, *parents, stdin=message)
        git("update-ref", f"refs/heads/{pull.base}", commit, base)
        pull.sha = head
        pull.state = "closed"
        pull.merged_at = self._now()
        pull.merged_by = by
        pull.merge_commit = commit
        if self.repository.find(pull.head) is not None:
            git("update-ref", "-d", f"refs/heads/{pull.head}")
        return commit

    def _is_up_to_date(self, pull: Pull) -> bool:
        base = self.repository.head(pull.base)
        return self.repository.git("merge-base", base, self._head(pull)) == base

    def _head(self, pull: Pull) -> str:
        tracked = pull.state == "open" and not pull.fork
        return (self.repository.find(pull.head) if tracked else None) or pull.sha

    def shown(self, pull: Pull) -> dict[str, Any]:
        merged = pull.merged_at is not None
        return {
            "number": pull.number,
            "html_url": f"{self.url.removesuffix('.git')}/pulls/{pull.number}",
            "title": pull.title,
            "draft": pull.is_draft,
            "body": pull.body,
            "state": pull.state,
            "merged": merged,
            "created_at": format_time(pull.created_at),
            "closed_at": format_time(pull.created_at) if pull.state == "closed" else None,
            "merged_at": format_time(pull.merged_at) if pull.merged_at else None,
            "merged_by": {"login": pull.merged_by} if merged else None,
            "merge_commit_sha": pull.merge_commit,
            "labels": [{"id": one, "name": self.labels[one - 1]} for one in pull.labels],
            "requested_reviewers": [{"login": name} for name in pull.reviewers],
            "requested_reviewers_teams": [{"name": name} for name in pull.teams],
            "assignees": [{"login": name} for name in pull.assignees] or None,
            "head": {"label": pull.head, "ref": pull.head, "sha": self._head(pull), "repo_id": 2 if pull.fork else 1},
            "base": {"label": pull.base, "ref": pull.base, "sha": "", "repo_id": 1},
        }


def _stated(status: dict[str, str]) -> dict[str, str]:
    return {
        "status": status["state"],
        "context": status["context"],
        "description": status.get("description", ""),
        "target_url": status.get("target_url", ""),
    }


@contextmanager
def fake_gitea(repository: GitRepository, certificate: Path, *, now: Callable[[], datetime]) -> Iterator[FakeGitea]:
    """Serve a repository under `/acme/<name>`, and the API of its host."""
    with serving(repository.path.parent / "served", certificate) as server:
        host = _served(server, repository, now)
        server.trouble = host.handle
        yield host


@contextmanager
def fake_giteas(root: Path, *, now: Callable[[], datetime]) -> Iterator[Callable[[GitRepository], FakeGitea]]:
    """Serve over HTTP the repositories that are added by what is yielded, each with the API of its own."""
    hosts: dict[str, FakeGitea] = {}

    def add(repository: GitRepository) -> FakeGitea:
        host = hosts[repository.path.stem] = _served(server, repository, now)
        return host

    def handle(exchange: Exchange, path: str) -> bool:
        found = re.match(rf"/api/v1/repos/{_OWNER}/([^/]+)", path)
        host = hosts.get(found[1]) if found else next(iter(hosts.values()), None)
        return host is not None and host.handle(exchange, path)

    with serving(root, None) as server:
        server.trouble = handle
        yield add


def _served(server: SmartServer, repository: GitRepository, now: Callable[[], datetime]) -> FakeGitea:
    repository.git("config", "http.receivepack", "true")
    directory = server.root / _OWNER
    directory.mkdir(parents=True, exist_ok=True)
    (directory / repository.path.name).symlink_to(repository.path)
    return FakeGitea(server, repository, now)
