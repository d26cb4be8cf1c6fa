"""The API server of a world, whichever it is.

A world needs of its server what a cluster gives, credentials per program, and three things that only a test wants: its
request log, whether it has come to rest, and what it holds at this moment, to be compared with what informers hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from kardinal.objects import ResourceType
from kardinal.runtime import Informer
from kardinal_local.plane import LocalPlane
from kardinal_local.plane.audit import RequestLog
from tests.support.clock import WorldClock
from tests.support.identities import ACCOUNTS, SYSTEM_NAMESPACE

__all__ = ["ApiServer", "PlaneServer"]


class ApiServer(Protocol):
    """The API server that a world lives on."""

    runs_workloads: bool
    """Whether Deployments get pods by themselves."""

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        ...

    @property
    def audit(self) -> RequestLog:
        """The requests of this test."""
        ...

    def kubeconfig_for(self, identity: str) -> Path:
        """Return the kubeconfig of `admin` or of a program."""
        ...

    def user(self, identity: str) -> str:
        """Return the name of an identity in the request log."""
        ...

    def requests(self) -> int:
        """Grows with every request."""
        ...

    def writes(self) -> int:
        """Grows with every write, those of the server's own controllers included."""
        ...

    def moment(self) -> object:
        """Equal to what it was before as long as nothing can have changed in the store."""
        ...

    def unrest(self) -> list[str]:
        """Return what the server's own controllers still have to do, a line each."""
        ...

    def served(self, informer: Informer) -> Mapping[tuple[str, str], str]:
        """(namespace, name) -> revision of what the informer should hold at this moment."""
        ...


class PlaneServer:
    """A local plane as the server of a world."""

    runs_workloads = False

    def __init__(self, plane: LocalPlane, clock: WorldClock) -> None:
        self._plane = plane
        self._clock = clock

    @property
    def kubeconfig(self) -> Path:
        return self._plane.kubeconfig

    @property
    def audit(self) -> RequestLog:
        return self._plane.audit

    def kubeconfig_for(self, identity: str) -> Path:
        return self._plane.kubeconfig_for(identity)

    def user(self, identity: str) -> str:
        return identity if identity == "admin" else f"system:serviceaccount:{SYSTEM_NAMESPACE}:{ACCOUNTS[identity]}"

    def requests(self) -> int:
        # Asked for thousands of times in a test, where a count that compares users and verbs takes a while.
        return self.audit.counts.total()

    def writes(self) -> int:
        return self.audit.writes

    def moment(self) -> object:
        # Without a request and without time nothing changes there.
        return self.requests(), self._clock.monotonic()

    def unrest(self) -> list[str]:
        return [] if self._plane.idle else ["the API server is working"]

    def served(self, informer: Informer) -> Mapping[tuple[str, str], str]:
        return self._plane.objects(_qualified(informer.resource), informer.namespace, informer.labels, informer.fields)


def _qualified(resource: ResourceType) -> str:
    return f"{resource.plural}.{resource.group}".removesuffix(".")
