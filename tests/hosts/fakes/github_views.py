"""How a fake GitHub shows what it remembers: the fields that matter; the description has the others."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from tests.hosts.fakes.github_state import Comment, Project, Pull, Review, Status, node_id

__all__ = ["View"]


class View:
    """The representations of one repository."""

    def __init__(self, project: Project, *, url: str) -> None:
        self._project = project
        self._web = f"{url}/{project.full_name}"
        self._url = url

    def pull(self, pull: Pull, *, whole: bool) -> dict[str, Any]:
        project = self._project
        project.follow(pull)
        merged = pull.merged_at is not None
        shown: dict[str, Any] = {
            "id": 7_000_000 + pull.number,
            "node_id": node_id("PR", pull.number),
            "number": pull.number,
            "html_url": f"{self._web}/pull/{pull.number}",
            "title": pull.title,
            "body": pull.body or None,
            "state": pull.state,
            "draft": pull.draft,
            "created_at": _time(pull.created_at),
            "updated_at": _time(pull.created_at),
            "closed_at": _time(pull.merged_at) if merged else None,
            "merged_at": _time(pull.merged_at) if merged else None,
            "user": self.user(pull.author),
            "labels": [{"name": name} for name in pull.labels],
            "assignees": [self.user(name) for name in pull.assignees],
            "requested_reviewers": [self.user(name) for name in pull.requested_reviewers],
            "requested_teams": [{"id": _number(name), "slug": name, "name": name} for name in pull.requested_teams],
            "head": self._branch(pull.fork or project.full_name, pull.head, pull.head_sha),
            "base": self._branch(project.full_name, pull.base, project.git.head(pull.base) or "0" * 40),
            # Before the merge, this is the commit of a trial merge on no branch.
            "merge_commit_sha": pull.merge_commit_sha or hashlib.sha1(pull.head_sha.encode()).hexdigest(),  # noqa: S324
        }
        if whole:
            mergeable = pull.state == "open" and not pull.fork and project.git.mergeable(pull.base, pull.head)
            shown |= {
                "merged": merged,
                "merged_by": self.user(pull.merged_by) if pull.merged_by else None,
                "mergeable": None if pull.state != "open" else mergeable,
                "mergeable_state": self._merge_state(pull) if mergeable else "dirty",
            }
        return shown

    def issue(self, pull: Pull) -> dict[str, Any]:
        """Return the issue that a pull request is as well."""
        shown = self.pull(pull, whole=False)
        names = ["id", "node_id", "number", "html_url", "title", "body", "state", "created_at", "updated_at", "user"]
        names += ["assignees", "labels"]
        closed = self.user(pull.closed_by) if pull.closed_by else None
        return {name: shown[name] for name in names} | {"closed_at": shown["closed_at"], "closed_by": closed}

    def _merge_state(self, pull: Pull) -> str:
        """Return "blocked" before "behind": of the two, GitHub shows what more than an update is needed for."""
        if self._project.obstacle(pull):
            return "blocked"
        return "behind" if self._project.is_behind(pull) else "clean"

    def user(self, login: str) -> dict[str, Any]:
        kind = "Bot" if login.endswith("[bot]") else "User"
        return {"login": login, "id": _number(login), "type": kind, "html_url": f"{self._url}/{login}"}

    def review(self, pull: Pull, index: int, review: Review) -> dict[str, Any]:
        return {
            "id": pull.number * 1000 + index,
            "user": self.user(review.login),
            "state": review.state,
            "submitted_at": _time(review.at),
            "commit_id": review.commit,
        }

    def comment(self, comment: Comment) -> dict[str, Any]:
        app = None if comment.app is None else {"id": comment.app, "client_id": f"Iv23liKardinal{comment.app}"}
        return {
            "id": comment.identifier,
            "body": comment.body,
            "user": self.user(comment.login),
            "performed_via_github_app": app,
        }

    def status(self, status: Status) -> dict[str, Any]:
        return {
            "context": status.context,
            "state": status.state,
            "description": status.description,
            "target_url": status.target_url,
            "created_at": _time(status.at),
            "updated_at": _time(status.at),
        }

    def repository(self, permissions: dict[str, bool] | None) -> dict[str, Any]:
        project = self._project
        shown: dict[str, Any] = {
            "name": project.name,
            "full_name": project.full_name,
            "default_branch": "main",
            "private": True,
            "archived": project.archived,
            "has_pull_requests": project.has_pull_requests,
            "owner": self.user(project.owner),
            "clone_url": f"{self._web}.git",
        }
        if permissions is not None:
            shown["permissions"] = permissions
        if permissions is None or permissions["push"]:
            shown |= {
                "allow_merge_commit": "merge" in project.methods,
                "allow_squash_merge": "squash" in project.methods,
                "allow_rebase_merge": "rebase" in project.methods,
                "delete_branch_on_merge": project.delete_branch_on_merge,
            }
        return shown

    def _branch(self, full_name: str, ref: str, sha: str) -> dict[str, Any]:
        owner, _, name = full_name.partition("/")
        repository = {"full_name": full_name, "name": name}
        return {"ref": ref, "sha": sha, "label": f"{owner}:{ref}", "repo": repository, "user": self.user(owner)}


def _time(moment: datetime | None) -> str:
    assert moment is not None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _number(login: str) -> int:
    return int(hashlib.sha256(login.encode()).hexdigest()[:6], 16)
