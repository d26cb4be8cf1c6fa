"""The state of a fake GitHub, and what people do there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tests.hosts.fakes.repository import Conflict, HostedRepository

__all__ = ["ROBOT", "App", "Comment", "Identity", "Project", "Pull", "Review", "Ruleset", "Status", "node_id"]

ROBOT = "kardinal-robot"


@dataclass(frozen=True)
class Identity:
    """Whose token it is and what it may do, in the words of fine-grained tokens: permission -> read or write."""

    login: str
    permissions: dict[str, str]
    app: int | None = None
    expires_at: datetime | None = None
    scopes: str | None = None
    """Those of a classic token, which are shown with every answer: `repo, read:org`."""

    def may(self, permission: str, level: str) -> bool:
        return self.permissions.get(permission) in ((level,) if level == "write" else ("read", "write"))


@dataclass
class App:
    """A GitHub App, with the token it gets for its one installation."""

    identifier: int
    slug: str
    public_key: str
    installation: int
    permissions: dict[str, str]
    client_id: str = "Iv23liKardinal4711"
    minted: int = 0
    lifetime: timedelta = timedelta(hours=1)


@dataclass
class Ruleset:
    """Rules of one branch, and whether kardinal's user may bypass them: always, pull_requests_only or never."""

    branch: str
    rules: tuple[str, ...]
    bypass: str = "never"
    methods: tuple[str, ...] = ()
    """The merge methods that its rule for pull requests allows; all where there are none."""


@dataclass
class Review:
    login: str
    state: str
    at: datetime
    commit: str


@dataclass
class Comment:
    identifier: int
    login: str
    body: str
    app: int | None = None


@dataclass
class Status:
    context: str
    state: str
    description: str
    target_url: str | None
    at: datetime


@dataclass
class Removal:
    """The end of a pull request's time in a merge queue that did not merge it."""

    at: datetime
    reason: str
    by: str | None


@dataclass
class Pull:
    """A pull request; `fork` is the full name of another repository that the head is in."""

    number: int
    title: str
    body: str
    head: str
    base: str
    author: str
    head_sha: str
    created_at: datetime
    fork: str = ""
    state: str = "open"
    merged_at: datetime | None = None
    merged_by: str | None = None
    merge_commit_sha: str | None = None
    labels: list[str] = field(default_factory=list)
    requested_reviewers: list[str] = field(default_factory=list)
    requested_teams: list[str] = field(default_factory=list)
    assignees: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    """The people and labels that were added, as its timeline shows them."""
    reviews: list[Review] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    queued: bool = False
    removed: Removal | None = None
    draft: bool = False
    closed_by: str | None = None


@dataclass
class Project:
    """A repository on GitHub with its settings; what is done here is done by a person in a browser."""

    owner: str
    name: str
    git: HostedRepository
    now: Callable[[], datetime]
    methods: set[str] = field(default_factory=lambda: {"merge", "squash", "rebase"})
    required_contexts: dict[str, set[str]] = field(default_factory=dict)
    required_approvals: dict[str, int] = field(default_factory=dict)
    linear: set[str] = field(default_factory=set)
    """Branches whose own protection wants a linear history."""
    strict: set[str] = field(default_factory=set)
    """Branches that pull requests have to be up to date with."""
    queues: set[str] = field(default_factory=set)
    collaborators: dict[str, str] = field(default_factory=dict)
    members: set[str] = field(default_factory=lambda: {"alice", "bob", "carol"})
    """Users with access to the repository."""
    teams: set[str] = field(default_factory=lambda: {"platform"})
    """Teams of the owner with access to the repository."""
    has_drafts: bool = True
    delete_branch_on_merge: bool = False
    archived: bool = False
    has_pull_requests: bool = True
    rulesets: dict[int, Ruleset] = field(default_factory=dict)
    unpushable: set[str] = field(default_factory=set)
    """Branches with a protection of their own that lets kardinal's user not push."""
    pulls: dict[int, Pull] = field(default_factory=dict)
    statuses: dict[str, list[Status]] = field(default_factory=dict)
    last_number: int = 0
    last_identifier: int = 1000

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"

    def open(self, *, head: str, base: str, title: str, body: str = "", by: str, fork: str = "") -> Pull:
        """Open a pull request."""
        self.last_number += 1
        commit = (None if fork else self.git.head(head)) or "0" * 40
        made = Pull(self.last_number, title, body, head, base, by, commit, self.now(), fork)
        self.pulls[made.number] = made
        return made

    def identifier(self) -> int:
        """Return a number that nothing else has."""
        self.last_identifier += 1
        return self.last_identifier

    def follow(self, pull: Pull) -> None:
        """Let an open pull request have the commits of its branch; it is closed when the branch is gone."""
        if pull.state != "open" or pull.fork:
            return
        head = self.git.head(pull.head)
        if head is None:
            pull.state = "closed"
        else:
            pull.head_sha = head

    def review(self, number: int, login: str, state: str) -> None:
        """Review: APPROVED, CHANGES_REQUESTED, COMMENTED or DISMISSED."""
        pull = self.pulls[number]
        self.follow(pull)
        pull.reviews.append(Review(login, state, self.now(), pull.head_sha))
        pull.requested_reviewers = [name for name in pull.requested_reviewers if name != login]

    def merge(self, number: int, method: str, *, by: str, message: str | None = None) -> Pull:
        """Merge; raises Conflict."""
        pull = self.pulls[number]
        self.follow(pull)
        text = message or f"{pull.title} (#{pull.number})"
        if method == "squash":
            landed = self.git.squash(pull.base, pull.head, message=text)
        elif method == "rebase":
            landed = self.git.rebase(pull.base, pull.head)
        else:
            title = f"Merge pull request #{pull.number} from {self.owner}/{pull.head}\n\n{pull.title}"
            landed = self.git.merge(pull.base, pull.head, message=message or title)
        pull.state = "closed"
        pull.merged_at = self.now()
        pull.merged_by = by
        pull.merge_commit_sha = landed
        pull.queued = False
        if self.delete_branch_on_merge:
            self.git.delete(pull.head)
        return pull

    def dequeue(self, number: int, *, reason: str, by: str | None = None) -> None:
        """Take a pull request out of the merge queue."""
        pull = self.pulls[number]
        pull.queued = False
        pull.removed = Removal(self.now(), reason, by)

    def allows(self, base: str, method: str) -> bool:
        """Return whether settings, rulesets and protection let a pull request be merged in this way."""
        rules = [one for one in self.rulesets.values() if one.branch == base]
        linear = base in self.linear or any("required_linear_history" in one.rules for one in rules)
        by_rules = all(not one.methods or method in one.methods for one in rules)
        return method in self.methods and by_rules and not (linear and method == "merge")

    def update_branch(self, number: int) -> str:
        """Merge the base into the head, as "Update branch" on the page does; raises Conflict."""
        pull = self.pulls[number]
        self.follow(pull)
        return self.git.merge(pull.head, pull.base, message=f"Merge branch '{pull.base}' into {pull.head}")

    def is_behind(self, pull: Pull) -> bool:
        """Return whether a pull request lacks commits of a base that wants all of them."""
        tip = self.git.head(pull.base)
        return pull.base in self.strict and tip is not None and not self.git.is_ancestor(tip, pull.head_sha)

    def obstacle(self, pull: Pull) -> str:
        """Return why GitHub does not merge yet; empty where nothing stands against it."""
        if pull.draft:
            return "Pull Request is still a draft"
        statuses = {status.context: status.state for status in self.statuses.get(pull.head_sha, [])}
        for context in sorted(self.required_contexts.get(pull.base, ())):
            if statuses.get(context) != "success":
                return f'Required status check "{context}" is expected.'
        latest = {review.login: review.state for review in pull.reviews if review.state != "COMMENTED"}
        wanted = self.required_approvals.get(pull.base, 0)
        if sum(state == "APPROVED" for state in latest.values()) < wanted:
            return f"At least {wanted} approving review is required by reviewers with write access."
        try:
            mergeable = self.git.mergeable(pull.base, pull.head)
        except Conflict:
            mergeable = False
        return "" if mergeable else "Pull Request is not mergeable"


def node_id(kind: str, number: int) -> str:
    """Return the id of a thing in the GraphQL API."""
    return f"{kind}_{hashlib.sha256(f'{kind}{number}'.encode()).hexdigest()[:16]}"
