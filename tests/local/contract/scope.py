"""What one test may call its own on a server that it shares: a namespace and an API group.

Both carry the id of the run, so that two runs never meet, and neither is made before it is asked for.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.local.contract.wire import Api

__all__ = ["Scope"]


class Scope:
    """The names of one test."""

    def __init__(self, run: str, test: str) -> None:
        digest = hashlib.sha256(test.encode()).hexdigest()[:6]
        self._namespace = f"contract-{run}-{digest}"
        self.group = f"t{run}{digest}.contract.kardinal.io"
        self._wanted = False
        self._made = False
        self._definitions: list[str] = []
        self._paths: list[str] = []

    @property
    def names(self) -> dict[str, str]:
        """What a recording calls them."""
        return {self._namespace: "namespace-1", self.group: "group-1"}

    def use_namespace(self) -> str:
        self._wanted = True
        return self._namespace

    def another_namespace(self, suffix: str) -> str:
        name = f"{self._namespace}-{suffix}"
        self.made(f"/api/v1/namespaces/{name}")
        return name

    def defined(self, name: str) -> None:
        """Remember a definition to delete."""
        self._definitions.append(name)

    def made(self, path: str) -> None:
        """Remember an object outside the namespace to delete."""
        self._paths.append(path)

    async def prepare(self, api: Api) -> None:
        """Make the namespace when somebody has asked for its name."""
        if self._wanted and not self._made:
            self._made = True
            created = await api.post("/api/v1/namespaces", {"metadata": {"name": self._namespace}})
            assert created.status == 201, created.body

    async def tidy(self, api: Api, *, namespaces: bool) -> None:
        """Delete what was made, without waiting for the end of it.

        Emptying a namespace costs a cluster hundreds of requests; one that ends with the run may keep it.
        """
        for path in self._paths:
            await api.delete(path)
        for name in self._definitions:
            await api.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
        if self._made and namespaces:
            await api.delete(f"/api/v1/namespaces/{self._namespace}")
