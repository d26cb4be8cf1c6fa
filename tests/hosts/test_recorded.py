"""Answers of a real Gitea, recorded: the client reads them as they were meant, on machines without Gitea as well.

`pytest -n0 --gitea --record-hosts tests/hosts/test_recorded.py` asks a real one anew. `make test-hosts` compares what
one answers with what is recorded, so that a new version that answers differently is noticed.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hack.gitea.assets import GITEA_VERSION
from hack.gitea.server import RunningGitea
from kardinal.objects.errors import KardinalError
from kardinal.scm.errors import (
    AccessDenied,
    HostUnavailable,
    MergeBlocked,
    PullRequestNotFound,
    RequestRefused,
)
from kardinal.scm.gitea_answers import ANSWERS
from kardinal.scm.gitea_values import ApiPullRequest
from kardinal.scm.http import HostAnswer, Outcome, decide
from kardinal.scm.values import parsed
from tests.git.conftest import manifests
from tests.hosts.gitea_host import GiteaHost
from tests.hosts.host import HEAD, PATIENCE
from tests.support.gitea import BOT_SCOPES, new_project

GUIDE = Path(__file__).parents[2] / "docs/guides/gitea.md"
RECORD = Path(__file__).parent / "recorded" / "gitea.json"

Asking = Callable[[GiteaHost], Awaitable[tuple[int, Any]]]


@dataclass(frozen=True)
class Situation:
    """An operation in a situation that `ask` brings about, and what its answer means."""

    operation: str
    ask: Asking
    outcome: Outcome
    error: type[KardinalError] | None = None
    age: float | None = 120.0


def pulls_path(host: GiteaHost) -> str:
    return f"{host.project.path}/pulls"


async def opened(host: GiteaHost, head: str = HEAD) -> tuple[int, Any]:
    host.propose(head)
    return await ready(host, {"title": "Promote", "head": head, "base": "main"})


async def ready(host: GiteaHost, body: object) -> tuple[int, Any]:
    """Open a pull request, once the host knows of its branch."""
    async with asyncio.timeout(PATIENCE):
        while (asked := host.project.ask("POST", pulls_path(host), body, by="bot"))[0] == 404:
            await asyncio.sleep(0.05)
    return asked


async def merge(host: GiteaHost, number: int = 1, *, by: str = "bot", **options: object) -> tuple[int, Any]:
    """Merge, once the host has compared the branches."""
    path = f"{pulls_path(host)}/{number}/merge"
    body = {"Do": "merge", **options}
    async with asyncio.timeout(PATIENCE):
        while True:
            status, answer = host.project.ask("POST", path, body, by=by)
            if status != 405 or "try again later" not in answer["message"]:
                return status, answer
            await asyncio.sleep(0.05)


async def opened_again(host: GiteaHost) -> tuple[int, Any]:
    await opened(host)
    return host.project.ask("POST", pulls_path(host), {"title": "x", "head": HEAD, "base": "main"}, by="bot")


async def opened_onto_itself(host: GiteaHost) -> tuple[int, Any]:
    return host.project.ask("POST", pulls_path(host), {"title": "x", "head": "main", "base": "main"}, by="bot")


async def opened_from_nowhere(host: GiteaHost) -> tuple[int, Any]:
    return host.project.ask("POST", pulls_path(host), {"title": "x", "head": "nowhere", "base": "main"}, by="bot")


async def unknown_number(host: GiteaHost) -> tuple[int, Any]:
    return host.project.ask("GET", f"{pulls_path(host)}/4711", by="bot")


async def unknown_commit(host: GiteaHost) -> tuple[int, Any]:
    return host.project.ask("GET", f"{host.project.path}/commits/{'0' * 39}1/status", by="bot")


async def merged(host: GiteaHost) -> tuple[int, Any]:
    await opened(host)
    return await merge(host, merge_message_field="", delete_branch_after_merge=True)


async def merged_twice(host: GiteaHost) -> tuple[int, Any]:
    await merged(host)
    return await merge(host)


async def merged_without_its_status(host: GiteaHost) -> tuple[int, Any]:
    await opened(host)
    host.require_status("main", "kardinal")
    return await merge(host)


async def merged_by_one_who_may_not(host: GiteaHost) -> tuple[int, Any]:
    await opened(host)
    alice = host.project.people["alice"].name
    host.project.protect("main", enable_merge_whitelist=True, merge_whitelist_usernames=[alice])
    return await merge(host)


async def merged_by_a_forbidden_method(host: GiteaHost) -> tuple[int, Any]:
    host.project.api("PATCH", host.project.path, {"has_pull_requests": True, "allow_rebase": False})
    await opened(host)
    return await merge(host, Do="rebase")


async def merged_at_another_head(host: GiteaHost) -> tuple[int, Any]:
    await opened(host)
    return await merge(host, head_commit_id="0" * 40)


async def merged_when_closed(host: GiteaHost) -> tuple[int, Any]:
    await opened(host)
    await host.close_by_person(1)
    return await merge(host)


async def closed_when_merged(host: GiteaHost) -> tuple[int, Any]:
    await merged(host)
    return host.project.ask("PATCH", f"{pulls_path(host)}/1", {"state": "closed"}, by="bot")


async def opened_in_an_archive(host: GiteaHost) -> tuple[int, Any]:
    host.propose()
    host.project.api("PATCH", host.project.path, {"archived": True})
    return await ready(host, {"title": "x", "head": HEAD, "base": "main"})


async def asked_without_the_scope(host: GiteaHost) -> tuple[int, Any]:
    # The guide's scopes do not reach here, as a token with too few of them does not reach comments.
    return host.project.ask("GET", "/notifications", by="bot")


async def asked_with_a_revoked_token(host: GiteaHost) -> tuple[int, Any]:
    host.revoke_token()
    return host.project.ask("GET", host.project.path, by="bot")


async def asked_for_a_repository_that_is_not_there(host: GiteaHost) -> tuple[int, Any]:
    return host.project.ask("GET", f"{host.project.path}-other", by="bot")


SITUATIONS = {
    "opened": Situation("open", opened, Outcome.SUCCESS),
    "opened again": Situation("open", opened_again, Outcome.ADOPT),
    "opened onto itself": Situation("open", opened_onto_itself, Outcome.SUCCESS),
    "opened from nowhere": Situation("open", opened_from_nowhere, Outcome.TERMINAL, RequestRefused),
    "opened from a new branch": Situation("open", opened_from_nowhere, Outcome.TRANSIENT, HostUnavailable, age=1.0),
    "opened in an archive": Situation("open", opened_in_an_archive, Outcome.TERMINAL, RequestRefused),
    "unknown number": Situation("get", unknown_number, Outcome.TERMINAL, PullRequestNotFound),
    "new number": Situation("get", unknown_number, Outcome.TRANSIENT, PullRequestNotFound, age=1.0),
    "unknown commit": Situation("statuses", unknown_commit, Outcome.TERMINAL, RequestRefused),
    "merged": Situation("merge", merged, Outcome.SUCCESS),
    "merged twice": Situation("merge", merged_twice, Outcome.REREAD),
    "merged without its status": Situation("merge", merged_without_its_status, Outcome.TRANSIENT, MergeBlocked),
    "merged by one who may not": Situation("merge", merged_by_one_who_may_not, Outcome.TERMINAL, AccessDenied),
    "merged by a forbidden method": Situation("merge", merged_by_a_forbidden_method, Outcome.TERMINAL, RequestRefused),
    "merged at another head": Situation("merge", merged_at_another_head, Outcome.REREAD),
    "merged when closed": Situation("merge", merged_when_closed, Outcome.REREAD),
    "closed when merged": Situation("close", closed_when_merged, Outcome.REREAD),
    "a scope is missing": Situation("comment", asked_without_the_scope, Outcome.TERMINAL, AccessDenied),
    "a revoked token": Situation("access", asked_with_a_revoked_token, Outcome.TERMINAL, AccessDenied),
    "no such repository": Situation("access", asked_for_a_repository_that_is_not_there, Outcome.TERMINAL, AccessDenied),
}


def recorded() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(RECORD.read_text())
    return found


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_recorded_answer_means_what_it_meant(name: str) -> None:
    situation = SITUATIONS[name]
    entry = recorded()[name]
    answer = HostAnswer(entry["status"], {}, json.dumps(entry["answer"]).encode())
    rule = decide(ANSWERS, situation.operation, answer, age=situation.age)
    assert (rule.outcome, rule.error) == (situation.outcome, situation.error)


def test_a_recorded_pull_request_is_read() -> None:
    opened = parsed(ApiPullRequest, recorded()["opened"]["answer"])
    assert opened.of_this_repository
    shown = opened.pull_request()
    assert (shown.number, shown.state, shown.head, shown.base) == (1, "open", HEAD, "main")
    assert (shown.merge_commit, shown.merged_at) == (None, None)


def test_the_guide_names_the_version_and_the_scopes_that_are_tried() -> None:
    guide = GUIDE.read_text()
    assert f"Gitea {GITEA_VERSION}" in guide
    assert [scope for scope in BOT_SCOPES if f"| `{scope}` |" not in guide] == []


@pytest.mark.parametrize("name", SITUATIONS)
async def test_the_real_one_still_answers_as_recorded(
    gitea: RunningGitea, tmp_path: Path, name: str, pytestconfig: pytest.Config
) -> None:
    host = GiteaHost(tmp_path, new_project(gitea, manifests()))
    host.start()
    try:
        status, answer = await SITUATIONS[name].ask(host)
    finally:
        await host.close()
    entry = {"status": status, "answer": steady(answer)}
    if pytestconfig.getoption("record_hosts"):
        kept = recorded() if RECORD.exists() else {}
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text(json.dumps({**kept, name: entry}, indent=1, sort_keys=True) + "\n")
        return
    assert entry["status"] == recorded()[name]["status"]
    assert shape(entry["answer"]) == shape(recorded()[name]["answer"])


def steady(value: Any) -> Any:
    """Return an answer without the names and numbers of one run."""
    text = json.dumps(value)
    text = re.sub(r"https://127\.0\.0\.1:[0-9]+", "https://git.example.org", text)
    text = re.sub(r"\b(org|bot|alice|carol)-[0-9a-f]{8}\b", r"\1", text)
    text = re.sub(r"\b[0-9a-f]{40}\b", "0" * 40, text)
    return json.loads(text)


def shape(value: Any) -> Any:
    """Return the message of an error, and the names of the fields of everything else."""
    if isinstance(value, dict):
        return re.sub("[0-9]+", "0", value["message"]) if "message" in value else sorted(value)
    return value
