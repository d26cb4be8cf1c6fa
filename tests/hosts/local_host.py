"""Provider `local` in the contract suite: the bare repository is the host."""

from __future__ import annotations

from pathlib import Path

from kardinal.clock import SystemClock
from kardinal.git import GitRunner, Repositories
from kardinal.scm import PROVIDERS, MergeMethod, PullRequests, RepositoryHost
from kardinal.scm.http import HostSessions
from tests.hosts.host import PERSON, Host


class LocalHost(Host):
    provider = PROVIDERS["local"]

    def __init__(self, directory: Path) -> None:
        super().__init__(directory / "gitops.git")
        self.url = str(directory / "gitops.git")
        self._runner = GitRunner(workers=2)
        self._repositories = Repositories(
            directory / "cache", runner=self._runner, clock=SystemClock(), allow_local=True
        )

    async def close(self) -> None:
        await super().close()
        await self._repositories.close()
        self._runner.close()

    def target(self, sessions: HostSessions) -> RepositoryHost:
        return RepositoryHost(url=self.url, clock=SystemClock(), repository=self._repositories.open(self.url))

    def fetch(self) -> None:
        """Do nothing: `git` works on the repository itself."""

    def publish(self, branch: str) -> None:
        """Do nothing: `git` works on the repository itself."""

    async def _person(self) -> PullRequests:
        assert self.provider.connect is not None
        return self.provider.connect(self.target(HostSessions(clock=SystemClock())))

    def delete_branch(self, branch: str) -> None:
        self.git("branch", "-D", branch)

    async def merge(self, number: int, method: MergeMethod | None) -> None:
        await (await self._person()).merge(number, by=PERSON)

    async def close_by_person(self, number: int) -> None:
        await (await self._person()).close(number, by=PERSON, comment="")

    async def make_draft(self, number: int) -> None:
        pulls = await self._person()
        await pulls.update(number, title=f"Draft: {(await pulls.get(number)).title}")

    async def comments(self, number: int) -> list[str]:
        return list((await (await self._person()).get(number)).comments)

    async def assigned(self, number: int) -> dict[str, list[str]]:
        return {"labels": list((await (await self._person()).get(number)).labels)}

    async def told(self, number: int) -> int:
        """Return the labels that there are: nothing keeps a timeline."""
        return len((await self.assigned(number))["labels"])
