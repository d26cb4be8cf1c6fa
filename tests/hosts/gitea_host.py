"""Provider `gitea` in the contract suite: a real Gitea."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from kardinal.clock import SystemClock
from kardinal.scm import PROVIDERS, MergeMethod, RepositoryHost
from kardinal.scm.http import HostSessions
from tests.hosts.host import HEAD, PATIENCE, PERSON, Host
from tests.support.gitea import PASSWORD, GiteaProject

_VERDICTS = {"approve": "APPROVED", "reject": "REQUEST_CHANGES", "comment": "COMMENT"}


async def merge_by_person(project: GiteaProject, number: int, method: str) -> None:
    """Merge a pull request; a person is told to try again later while the host compares the branches."""
    async with asyncio.timeout(PATIENCE):
        while True:
            status, answer = project.ask("POST", f"{project.path}/pulls/{number}/merge", {"Do": method}, by=PERSON)
            if status == 200:
                return
            assert "try again later" in answer["message"], answer
            await asyncio.sleep(0.05)


class GiteaHost(Host):
    provider = PROVIDERS["gitea"]

    def __init__(self, directory: Path, project: GiteaProject) -> None:
        super().__init__(directory / "work.git")
        self.project = project
        self.url = project.url

    def target(self, sessions: HostSessions) -> RepositoryHost:
        authority = self.project.server.authority
        return RepositoryHost(url=self.url, clock=SystemClock(), sessions=sessions, authority=authority)

    def secret(self) -> dict[str, str]:
        return {"token": self.project.people["bot"].token}

    def start(self) -> None:
        # The project began with the first commit.
        self.fetch()

    def fetch(self) -> None:
        self._git("fetch", "--quiet", "--prune", self.url, "+refs/heads/*:refs/heads/*")

    def publish(self, branch: str) -> None:
        self._git("push", "--quiet", "--force", self.url, f"refs/heads/{branch}:refs/heads/{branch}")

    def _git(self, *arguments: str) -> None:
        self.git(*self.project.git_options(PERSON), *arguments)

    def delete_branch(self, branch: str) -> None:
        self._git("push", "--quiet", self.url, f":refs/heads/{branch}")

    async def merge(self, number: int, method: MergeMethod | None) -> None:
        await merge_by_person(self.project, number, method or "merge")

    async def close_by_person(self, number: int) -> None:
        self.project.api("PATCH", f"{self.project.path}/pulls/{number}", {"state": "closed"}, by=PERSON)

    async def make_draft(self, number: int) -> None:
        path = f"{self.project.path}/pulls/{number}"
        title = self.project.api("GET", path, by=PERSON)["title"]
        self.project.api("PATCH", path, {"title": f"WIP: {title}"}, by=PERSON)

    async def comments(self, number: int) -> list[str]:
        found = self.project.api("GET", f"{self.project.path}/issues/{number}/comments", by=PERSON)
        return [comment["body"] for comment in found]

    def login(self, who: str) -> str:
        return self.project.people[who].name if who in self.project.people else who

    def make_stranger(self) -> str:
        login = f"mallory-{self.project.organization}"
        user = {"username": login, "email": f"{login}@example.org", "password": PASSWORD, "must_change_password": False}
        self.project.api("POST", "/admin/users", user)
        return login

    def make_team(self, name: str) -> str:
        units = ["repo.code", "repo.pulls"]
        team = {"name": name, "permission": "write", "includes_all_repositories": True, "units": units}
        self.project.api("POST", f"/orgs/{self.project.organization}/teams", team)
        return f"{self.project.organization}/{name}"

    async def assigned(self, number: int) -> dict[str, list[str]]:
        pull = self.project.api("GET", f"{self.project.path}/pulls/{number}", by=PERSON)
        return {
            "reviewers": [user["login"] for user in pull["requested_reviewers"] or ()],
            "teamReviewers": [team["name"] for team in pull["requested_reviewers_teams"] or ()],
            "assignees": [user["login"] for user in pull["assignees"] or ()],
            "labels": [label["name"] for label in pull["labels"]],
        }

    async def told(self, number: int) -> int:
        events = self.project.api("GET", f"{self.project.path}/issues/{number}/timeline", by=PERSON)
        return sum(event["type"] in ("label", "assignees", "review_request") for event in events)

    def propose_from_fork(self, files: Mapping[str, str], *, head: str = HEAD) -> tuple[int, str]:
        project = self.project
        stranger = self.project.people["carol"]
        project.api("POST", f"{project.path}/forks", {"name": "fork"}, by="carol")
        self.fetch()
        self.git("branch", "--force", head, "main")
        commit = self.git("rev-parse", "main")
        for path, content in files.items():
            commit = self._only(head, path, content)
        fork = f"{project.server.url}/{stranger.name}/fork.git"
        self.git(*project.git_options("carol"), "push", "--quiet", "--force", fork, f"{head}:{head}")
        body = {"title": "Mine", "head": f"{stranger.name}/fork:{head}", "base": "main"}
        return int(project.api("POST", f"{project.path}/pulls", body, by="carol")["number"]), commit

    def _only(self, branch: str, path: str, content: str) -> str:
        tip = self.git("rev-parse", branch)
        names = self.git("ls-tree", "-r", "--name-only", tip).splitlines()
        there = {name: self.git("show", f"{tip}:{name}") + "\n" for name in names}
        return self.git.commit({**there, path: content}, branch=branch, parent=tip)

    def comment_by_person(self, number: int, text: str) -> None:
        self.project.api("POST", f"{self.project.path}/issues/{number}/comments", {"body": text}, by=PERSON)

    def label_by_person(self, number: int, name: str) -> None:
        body = {"name": name, "color": "#ff0000"}
        label = self.project.api("POST", f"{self.project.path}/labels", body, by=PERSON)
        path = f"{self.project.path}/issues/{number}/labels"
        self.project.api("POST", path, {"labels": [label["id"]]}, by=PERSON)

    def review(self, number: int, who: str, verdict: str) -> None:
        body = {"event": _VERDICTS[verdict], "body": verdict}
        self.project.api("POST", f"{self.project.path}/pulls/{number}/reviews", body, by=who)

    def require_status(self, branch: str, context: str) -> None:
        self.project.protect(branch, enable_status_check=True, status_check_contexts=[context])

    def revoke_token(self) -> None:
        self.project.revoke("bot")
