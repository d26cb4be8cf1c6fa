"""The page of one person on their machine: on loopback, as the user of their kubeconfig, by a link with a code."""

from __future__ import annotations

from kardinal.clock import Clock
from kardinal.kube import Client
from kardinal_controller.caches import Caches
from kardinal_controller.ui.access import KubeconfigAccess, Reception, Refusal, Reviews, Rights
from kardinal_controller.ui.access.reviews import Person
from kardinal_controller.ui.actions import ActionRoutes
from kardinal_controller.ui.server import VERSION, PageServer

__all__ = ["OwnPage"]


class OwnPage:
    """The page of the user of `client` on a port of 127.0.0.1, 0 for a free one.

    A runnable that is started once the informers of `caches` are complete. These may list as another user: the page
    shows what the user of `client` may list. `approvals` is the URL of the controller that approvals are posted to.
    """

    def __init__(
        self,
        client: Client,
        caches: Caches,
        *,
        clock: Clock,
        port: int = 0,
        argocd: str = "",
        approvals: str | None = None,
    ) -> None:
        self._client = client
        self._caches = caches
        self._clock = clock
        self._port = port
        self._argocd = argocd
        self._approvals = approvals
        self._access: KubeconfigAccess | None = None
        self._server: PageServer | None = None

    async def start(self) -> None:
        """Serve the page; afterwards `link` has its address. Raises OSError if the port is taken."""
        reviews = Reviews(self._client, clock=self._clock)
        try:
            person = await reviews.own_person()
        except Refusal:
            # An API server before 1.28 does not say.
            person = Person("the user of this kubeconfig", own=True)
        reception = Reception(
            rights=Rights(reviews, clock=self._clock), namespaces=self._caches.namespaces, version=VERSION
        )
        access = KubeconfigAccess(self._client, person=person, reception=reception)
        server = PageServer(
            self._caches,
            access,
            clock=self._clock,
            address=f"127.0.0.1:{self._port}",
            argocd=self._argocd,
            groups=(ActionRoutes(access, approvals=self._approvals).group(),),
        )
        self._access = access
        self._server = server
        await server.start()

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop()

    def link(self) -> str:
        """Return the link to the page with a new code, which is accepted once."""
        if self._access is None or self._server is None:
            raise RuntimeError("the link is asked for before the page is served")
        return self._access.link(self._server.url)
