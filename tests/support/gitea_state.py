"""The state of a fake Gitea: its pull requests, and the settings that keep a credential from something."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

__all__ = ["Pull", "Rights"]

_CATEGORIES = {"user": "user", "issues": "issue", "labels": "issue"}


@dataclass(slots=True)
class Pull:
    number: int
    title: str
    body: str
    head: str
    base: str
    sha: str
    created_at: datetime
    state: str = "open"
    merged_at: datetime | None = None
    merged_by: str = ""
    closed_by: str = ""
    merge_commit: str | None = None
    labels: list[int] = field(default_factory=list)
    reviewers: list[str] = field(default_factory=list)
    teams: list[str] = field(default_factory=list)
    assignees: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    reviews: list[dict[str, Any]] = field(default_factory=list)
    fork: bool = False

    @property
    def is_draft(self) -> bool:
        return self.title.upper().startswith(("WIP:", "[WIP]"))


@dataclass
class Rights:
    """The rights of kardinal's token and its user.

    `protected`: branch -> what kardinal's user may do with it: `user_can_push`, `user_can_merge`.
    """

    settings: dict[str, Any] = field(default_factory=lambda: {"archived": False, "has_pull_requests": True})
    scopes: set[str] = field(default_factory=lambda: {"write:repository", "write:issue", "read:user"})
    protected: dict[str, dict[str, bool]] = field(default_factory=dict)

    def refusal(self, method: str, path: str) -> tuple[int, Any] | None:
        """Return the answer to a token without the scope; the host looks at it before anything else."""
        category = _CATEGORIES.get(path.removeprefix("/").partition("/")[0], "repository")
        enough = {f"write:{category}"} | ({f"read:{category}"} if method == "GET" else set())
        if self.scopes & enough:
            return None
        return 403, {"message": "token does not have at least one of required scope(s)"}

    def branch(self, name: str) -> dict[str, Any]:
        """Return a branch as the API shows it."""
        return {"name": name, "user_can_push": True, "user_can_merge": True, **self.protected.get(name, {})}
