"""The table: an effect of a promotion, what happens to it, and what the promotion must have come to in the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.resilience.faults import strikes
from tests.resilience.faults.strikes import Strike, answer
from tests.support.names import DEV
from tests.support.repository import GitRepository

__all__ = ["CELLS", "FLOWS", "GITHUB", "Cell"]

FLOWS: dict[str, dict[str, Any]] = {
    "push": {"approval": "auto"},
    "record": {"approval": "auto", "pr": True},
    "review": {"approval": "pr-review"},
}
"""The spec of a promotion: it lands by a push, by its own merge, or by that of a person."""

FETCH_REFS = r"^GET .*info/refs\?service=git-upload-pack"
FETCH = r"^POST .*git-upload-pack"
PUSH_REFS = r"^GET .*info/refs\?service=git-receive-pack"
PUSH = r"^POST .*git-receive-pack"
OPEN = r"^POST .*/pulls$"
FIND = r"^GET .*/pulls(/main/|\?head=)"
LABELS = r"^(GET|POST) .*/labels"
GET = r"^GET .*/pulls/1$"
STATUS = r"^POST .*/statuses/"
MERGE = r"^(POST|PUT) .*/pulls/1/merge"
QUEUE = r"^POST .*/graphql"
TIDY = r"^DELETE .*/git/refs/"
ALWAYS = 10_000


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One effect and one fault.

    `effect`: the requests that are hit, `times` of them after the first `spared`. `state`, `reason` and `says`: the
    status in the end, where the reason is that of the first condition; the state Held is the condition with the reason
    Blocked. `commits`: those of the promotion on the target. `pulls`: pull requests ever opened. `calls`: requests of
    the effect at most, those that were hit among them. `github`: what is different there.
    """

    name: str
    effect: str
    strike: Strike
    flow: str = "record"
    times: int = 1
    spared: int = 0
    state: str = "Verified"
    reason: str = ""
    says: str = ""
    commits: int = 1
    pulls: int = 1
    calls: int = 2
    github: Mapping[str, Any] = field(default_factory=dict)

    def at_github(self) -> Cell:
        """Return the cell as it is at GitHub."""
        return replace(self, github={}, **self.github)

    def __str__(self) -> str:
        return self.name


def refused(
    name: str,
    effect: str,
    strike: Strike,
    *,
    reason: str,
    says: str = "",
    pulls: int = 0,
    flow: str = "record",
    calls: int = 1,
    github: Mapping[str, Any] | None = None,
) -> Cell:
    """Return a cell that ends the promotion before anything has landed."""
    return Cell(
        name=name,
        effect=effect,
        strike=strike,
        flow=flow,
        times=ALWAYS,
        state="Failed",
        reason=reason,
        says=says,
        commits=0,
        pulls=pulls,
        calls=calls,
        github=github or {},
    )


def held(name: str, effect: str, strike: Strike, **fields: Any) -> Cell:
    """Return a cell that holds the promotion before anything has landed, until a person mends the credential."""
    return replace(refused(name, effect, strike, reason="Blocked", **fields), state="Held")


def _hook(repository: GitRepository) -> None:
    """Refuse every push from now on, as a protected branch does."""
    hook = repository.path / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho protected branch >&2\nexit 1\n")
    hook.chmod(0o755)


def _lock(repository: GitRepository) -> None:
    """Hold the lock of the target branch, as a writer does that died, until the next fetch."""
    lock = repository.path / "refs" / "heads" / "main.lock"
    lock.touch()


def _commit(repository: GitRepository) -> None:
    repository.commit({"README": "meanwhile"})


def _same_file(repository: GitRepository) -> None:
    path = f"environments/{DEV}/kustomization.yaml"
    repository.commit({path: repository.read(path) + "# reviewed\n"})


GIT = [
    Cell(name="fetch: 503", effect=FETCH_REFS, strike=answer(503), flow="push", pulls=0, calls=6),
    Cell(name="fetch: reset", effect=FETCH, strike=strikes.reset, flow="push", pulls=0, calls=6),
    Cell(name="fetch: references cut short", effect=FETCH, strike=strikes.cut, flow="push", pulls=0, calls=8),
    Cell(name="fetch: pack cut short", effect=FETCH, strike=strikes.cut, flow="push", spared=1, pulls=0, calls=8),
    Cell(name="fetch: stalled", effect=FETCH_REFS, strike=strikes.stall, flow="push", pulls=0, calls=6),
    held("fetch: 401", FETCH_REFS, answer(401), flow="push", calls=4),
    held("fetch: 403", FETCH_REFS, answer(403), flow="push", calls=4),
    Cell(name="fetch: 404", effect=FETCH_REFS, strike=answer(404), flow="push", pulls=0, calls=6),
    Cell(name="push: 503 of refs", effect=PUSH_REFS, strike=answer(503), flow="push", pulls=0),
    Cell(name="push: 503", effect=PUSH, strike=answer(503), flow="push", pulls=0),
    Cell(name="push: reset", effect=PUSH, strike=strikes.reset, flow="push", pulls=0),
    Cell(name="push: answer lost", effect=PUSH, strike=strikes.lost, flow="push", pulls=0),
    Cell(name="push: answer cut short", effect=PUSH, strike=strikes.cut, flow="push", pulls=0, calls=1),
    Cell(name="push: stalled", effect=PUSH, strike=strikes.stall, flow="push", pulls=0, calls=1),
    Cell(name="push: branch moved", effect=PUSH, strike=strikes.meanwhile(_commit), flow="push", pulls=0),
    Cell(name="push: same file moved", effect=PUSH, strike=strikes.meanwhile(_same_file), flow="push", pulls=0),
    Cell(name="push: killed before", effect=PUSH, strike=strikes.die_before, flow="push", pulls=0, calls=3),
    Cell(name="push: killed after", effect=PUSH, strike=strikes.die_after, flow="push", pulls=0),
    held("push: 401", PUSH_REFS, answer(401), flow="push", calls=3),
    held("push: 403", PUSH_REFS, answer(403), flow="push", calls=3),
    refused("push: refused by a hook", PUSH, strikes.meanwhile(_hook), flow="push", reason="PushRejected", calls=3),
    Cell(name="proposal: 503", effect=PUSH, strike=answer(503)),
    Cell(name="proposal: answer lost", effect=PUSH, strike=strikes.lost),
    Cell(name="proposal: killed before", effect=PUSH, strike=strikes.die_before, calls=3),
    Cell(name="proposal: killed after", effect=PUSH, strike=strikes.die_after),
    refused("proposal: refused by a hook", PUSH, strikes.meanwhile(_hook), reason="PushRejected", calls=3),
]
"""Faults of Git servers. A request on a connection that is used again and ends is repeated by git's curl itself."""

OPENING = [
    Cell(name="open: 502", effect=OPEN, strike=answer(502)),
    Cell(name="open: 429", effect=OPEN, strike=answer(429, headers={"Retry-After": "30"})),
    Cell(name="open: 404 in the first minute", effect=OPEN, strike=answer(404)),
    Cell(name="open: reset", effect=OPEN, strike=strikes.reset),
    Cell(name="open: answer lost", effect=OPEN, strike=strikes.lost, calls=2),
    Cell(name="open: answer cut short", effect=OPEN, strike=strikes.cut, calls=2),
    Cell(name="open: endless drip", effect=OPEN, strike=strikes.drip),
    Cell(name="open: page of a proxy", effect=OPEN, strike=answer(200, "<html>sign in</html>")),
    Cell(name="open: 201 and nothing done", effect=OPEN, strike=strikes.nothing),
    Cell(name="open: killed before", effect=OPEN, strike=strikes.die_before),
    Cell(name="open: killed after", effect=OPEN, strike=strikes.die_after, calls=2),
    Cell(name="open: target moved", effect=OPEN, strike=strikes.meanwhile(_commit), calls=1),
    held("open: 401", OPEN, answer(401), says="git.secretRef"),
    held("open: 403", OPEN, answer(403), says="the permission "),
    refused("open: moved", OPEN, answer(301), reason="RequestRefused", says="git.url"),
    Cell(name="find: 502", effect=FIND, strike=answer(502), calls=8),
    held("find: 401", FIND, answer(401), says="git.secretRef"),
    Cell(name="labels: 502", effect=LABELS, strike=answer(502), calls=8),
    # GitHub takes labels only of a pull request that is there.
    held("labels: 403", LABELS, answer(403), github={"pulls": 1}),
]
"""Faults of hosts at a new pull request."""

MERGING = [
    Cell(name="status: 502", effect=STATUS, strike=answer(502), calls=3),
    Cell(name="status: 429", effect=STATUS, strike=answer(429, headers={"Retry-After": "30"}), calls=3),
    Cell(name="status: answer lost", effect=STATUS, strike=strikes.lost, calls=2),
    Cell(name="status: killed after", effect=STATUS, strike=strikes.die_after, calls=2),
    held("status: 403", STATUS, answer(403), pulls=1),
    # At GitHub it is a PUT, which aiohttp sends again by itself on a new connection.
    Cell(name="merge: 502", effect=MERGE, strike=answer(502)),
    Cell(name="merge: 405", effect=MERGE, strike=answer(405)),
    Cell(name="merge: 409", effect=MERGE, strike=answer(409)),
    Cell(name="merge: 429", effect=MERGE, strike=answer(429, headers={"Retry-After": "30"})),
    Cell(name="merge: reset", effect=MERGE, strike=strikes.reset),
    Cell(name="merge: answer lost", effect=MERGE, strike=strikes.lost, calls=1, github={"calls": 2}),
    Cell(name="merge: 200 and nothing done", effect=MERGE, strike=strikes.nothing),
    Cell(name="merge: killed before", effect=MERGE, strike=strikes.die_before, github={"calls": 3}),
    Cell(name="merge: killed after", effect=MERGE, strike=strikes.die_after, calls=1, github={"calls": 2}),
    Cell(name="merge: target moved", effect=MERGE, strike=strikes.meanwhile(_commit), calls=1),
    held("merge: 403", MERGE, answer(403), pulls=1),
    Cell(name="wait: 502", effect=GET, strike=answer(502), flow="review", calls=6),
    Cell(name="wait: 404 in the first minute", effect=GET, strike=answer(404), flow="review", calls=6),
    Cell(name="wait: answer cut short", effect=GET, strike=strikes.cut, flow="review", calls=6),
    Cell(name="wait: endless drip", effect=GET, strike=strikes.drip, flow="review", calls=6),
    Cell(name="wait: killed", effect=GET, strike=strikes.die_before, flow="review", calls=6),
    held("wait: 401", GET, answer(401), flow="review", pulls=1),
    refused("wait: 404 for good", GET, answer(404), flow="review", reason="PullRequestNotFound", pulls=1, calls=20),
]
"""Faults of hosts at a pull request that is there."""

CELLS = [*GIT, *OPENING, *MERGING]

SECONDARY = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}
INVALID = {"message": "Validation Failed", "errors": [{"resource": "PullRequest", "field": "head", "code": "invalid"}]}
MOVED = {"message": "Base branch was modified. Review and try the merge again."}

OF_GITHUB = [
    Cell(name="open: secondary limit", effect=OPEN, strike=answer(403, SECONDARY)),
    Cell(name="open: 403 and Retry-After", effect=OPEN, strike=answer(403, headers={"Retry-After": "30"})),
    Cell(name="open: nothing remains", effect=OPEN, strike=answer(403, headers={"X-RateLimit-Remaining": "0"})),
    Cell(name="open: branch not known yet", effect=OPEN, strike=answer(422, INVALID)),
    Cell(name="merge: base modified", effect=MERGE, strike=answer(405, MOVED)),
    Cell(name="queue: 502", effect=QUEUE, strike=answer(502)),
    Cell(name="branch: 502", effect=TIDY, strike=answer(502), calls=1),
    held("queue: 401", QUEUE, answer(401), says="git.secretRef", pulls=1),
]
"""Faults that only GitHub has, or that it means in another way."""

IN_TRANSIT = (strikes.reset, strikes.cut, strikes.drip)
"""One client sends the requests to every host: what is lost on the way is lost alike."""

GITHUB = [*(cell.at_github() for cell in (*OPENING, *MERGING) if cell.strike not in IN_TRANSIT), *OF_GITHUB]
"""The cells of a host's API, at another host with other requests for the same effects."""
