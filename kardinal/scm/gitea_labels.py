"""Labels at Gitea and Forgejo, which identify them by number."""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.scm.gitea_values import ApiLabel
from kardinal.scm.http import HostClient
from kardinal.scm.values import parsed

__all__ = ["GiteaLabels"]

_PAGE = "50"
_COLOR = "#0e8a16"


class GiteaLabels:
    """The labels of one repository."""

    def __init__(self, client: HostClient, path: str) -> None:
        self._client = client
        self._path = path

    async def ids(self, names: Sequence[str]) -> Sequence[int]:
        """Return the ids of labels; labels that the repository does not have are created."""
        if not names:
            return []
        path = f"{self._path}/labels"
        pages = self._client.pages("labels", path, query={"limit": _PAGE})
        known = {label.name: label.id for label in [parsed(ApiLabel, item) async for item in pages]}
        for name in names:
            if name not in known:
                new = {"name": name, "color": _COLOR, "description": "Made by kardinal"}
                made = await self._client.request("labels", "POST", path, body=new)
                known[name] = parsed(ApiLabel, made.value).id
        return [known[name] for name in names]

    async def change(
        self, number: int, there: Sequence[ApiLabel], *, add: Sequence[str], remove: Sequence[str]
    ) -> None:
        """Add and remove labels of a pull request that has the labels `there`; the list is replaced."""
        ids = [label.id for label in there if label.name not in remove]
        ids += await self.ids(add)
        await self._client.request("labels", "PUT", self._of(number), body={"labels": ids}, age=self._age(number))

    async def add(self, number: int, names: Sequence[str]) -> None:
        """Add labels without removing any."""
        ids = await self.ids(names)
        await self._client.request("labels", "POST", self._of(number), body={"labels": ids}, age=self._age(number))

    def _of(self, number: int) -> str:
        return f"{self._path}/issues/{number}/labels"

    def _age(self, number: int) -> float:
        return self._client.age(f"{self._path} {number}")
