"""Start and stop a local plane: its directory, its HTTPS server, its controllers.

A plane owns its directory while it runs (a lock that the operating system releases when the process dies, however it
dies) and serves it on loopback over TLS. What it stores survives a restart; connections do not, and watchers reconnect.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from io import FileIO
from pathlib import Path

from aiohttp import web

from kardinal_local.plane import schemas
from kardinal_local.plane.audit import RequestLog
from kardinal_local.plane.builtin import BUILTIN_KINDS, CUSTOM_RESOURCE_DEFINITION
from kardinal_local.plane.clock import Clock, SystemClock
from kardinal_local.plane.control import Control
from kardinal_local.plane.directory import acquire
from kardinal_local.plane.errors import LocalPlaneError, PortUnusable
from kardinal_local.plane.handlers import Api, Health, Information, Questions, Reading, Writing
from kardinal_local.plane.kinds import Registry
from kardinal_local.plane.objects import Deletion, Objects, Selector, parse_fields, parse_labels
from kardinal_local.plane.security import (
    IDENTITIES,
    REVIEW_KINDS,
    Access,
    Accounts,
    Authentication,
    Authority,
    Reviews,
    TokenRequests,
    Tokens,
    bootstrap,
    first_objects,
    private_directory,
    write_kubeconfig,
)
from kardinal_local.plane.storage import Store
from kardinal_local.plane.wire import Chaos, Connections

__all__ = ["LocalPlane"]

ADDRESS = "127.0.0.1"
SHUTDOWN_SECONDS = 2.0
# Longer than the 90 s for which Go clients keep an idle connection: the client must be the one to let go.
KEEPALIVE_SECONDS = 120.0
# For a client to hear why the rest of its body is not wanted.
LINGERING_SECONDS = 1.0
# A selector of many names is a long one.
REQUEST_LINE_LIMIT = 64 * 1024


@dataclass(frozen=True, slots=True)
class _Opened:
    """What a directory holds, once it is ours."""

    lock: FileIO
    socket: socket.socket
    store: Store
    authority: Authority
    tokens: Tokens


class LocalPlane:
    """A running API server; made by `start`."""

    def __init__(self, directory: Path, opened: _Opened, *, clock: Clock, chaos: Chaos | None, hold: bool) -> None:
        self._directory = directory
        self._opened = opened
        self._store = opened.store
        self.port: int = opened.socket.getsockname()[1]
        self._registry = Registry((*BUILTIN_KINDS, *REVIEW_KINDS))
        deletion = Deletion(self._store, clock=clock)
        self._clock = clock
        objects = Objects(self._store, clock=clock)
        self._control = Control(self._store, registry=self._registry, objects=objects, deletion=deletion, clock=clock)
        self._reading = Reading(self._store.committed, clock=clock, chaos=chaos)
        self.audit = RequestLog()
        self._health = Health(held=hold)
        committed = self._store.committed
        access = Access(committed)
        accounts = Accounts(committed, key=opened.tokens.key, clock=clock)
        authentication = Authentication(opened.tokens, accounts)
        api = Api(
            registry=self._registry,
            authentication=authentication,
            access=access,
            log=self.audit,
            health=self._health,
            information=Information(self._registry),
            questions=Questions(
                Reviews(access, authentication, clock=clock), TokenRequests(committed, accounts, clock=clock)
            ),
            reading=self._reading,
            writing=Writing(
                self._store,
                objects,
                deletion,
                lists=self._reading.lists,
                access=access,
                clock=clock,
            ),
            chaos=chaos,
        )
        server = Connections(
            api,
            handler_cancellation=True,
            keepalive_timeout=KEEPALIVE_SECONDS,
            lingering_time=LINGERING_SECONDS,
            max_line_size=REQUEST_LINE_LIMIT,
            auto_decompress=False,
        )
        self._runner = web.ServerRunner(server, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)

    @classmethod
    async def start(
        cls,
        directory: Path,
        *,
        port: int = 0,
        clock: Clock | None = None,
        authority: Authority | None = None,
        durable: bool = False,
        chaos: int | None = None,
        hold: bool = False,
    ) -> LocalPlane:
        """Serve `directory`, which is created when missing; port 0 takes a free one.

        With `durable` no write is answered before it would survive a power failure. With `chaos`, a seed, programs
        meet conflicts, refusals, lost connections and late events. With `hold`, `/readyz` fails and there is no
        kubeconfig of the administrator until `release`; programs connect meanwhile with those of their own.
        """
        clock = clock or SystemClock()
        opened = await asyncio.to_thread(
            _open, directory, authority=authority, port=port, now=clock.now(), durable=durable
        )
        faults = None if chaos is None else Chaos(chaos)
        plane = cls(directory, opened, clock=clock, chaos=faults, hold=hold)
        try:
            await plane._listen()
            if not hold:
                await plane.release()
        except BaseException:
            await plane.stop()
            raise
        return plane

    @property
    def url(self) -> str:
        return f"https://{ADDRESS}:{self.port}"

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the person who started the plane."""
        return self.kubeconfig_for("admin")

    def kubeconfig_for(self, identity: str) -> Path:
        """Return the path of the kubeconfig of an identity, one of `IDENTITIES` such as `controller`."""
        if identity not in IDENTITIES:
            raise ValueError(f"unknown identity {identity!r}: one of {', '.join(IDENTITIES)}")
        return _kubeconfig(self._directory, identity)

    async def release(self) -> None:
        """Be ready: pass `/readyz`, and put the administrator's kubeconfig into its place."""
        self._health.release()
        await asyncio.to_thread(_write_kubeconfig, self._directory, "admin", self._opened, self.port)

    @property
    def idle(self) -> bool:
        """Whether the housekeeping has caught up with every commit."""
        return self._control.idle

    def objects(
        self,
        resource: str,
        namespace: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
    ) -> dict[tuple[str, str], str]:
        """(namespace, name) -> resourceVersion in `plural.group`, for tests that wait for their informers."""
        kind = next((one for one in self._registry.kinds() if one.qualified == resource), None)
        if kind is None:
            return {}
        selector = Selector(parse_labels(labels or ""), parse_fields(fields or "", kind=kind), namespace or "")
        return {
            (entry.namespace, entry.name): str(entry.revision) for entry in self._reading.lists.select(kind, selector)
        }

    async def stop(self) -> None:
        """End watches, answer what is under way, give the directory back."""
        await self._control.stop()
        self._store.committed.history.close()
        await self._runner.cleanup()
        with suppress(LocalPlaneError):
            await self._store.settled()
        await asyncio.to_thread(self._close)

    async def _listen(self) -> None:
        self._control.start()
        bootstrap(self._store, now=self._clock.now())
        await self._store.settled()
        await self._runner.setup()
        await web.SockSite(self._runner, self._opened.socket, ssl_context=self._opened.authority.context).start()

    def _close(self) -> None:
        self._opened.socket.close()
        self._store.close()
        self._opened.lock.close()


def _open(directory: Path, *, authority: Authority | None, port: int, now: datetime, durable: bool) -> _Opened:
    """Everything that blocks, in one go."""
    private_directory(directory)
    with ExitStack() as undo:
        lock = undo.enter_context(acquire(directory))
        # The one of an earlier run must not tell a script that this one is ready.
        _kubeconfig(directory, "admin").unlink(missing_ok=True)
        listener = undo.enter_context(_bound(port))
        authority = authority or Authority.load_or_create(directory)
        tokens = Tokens.load_or_create(directory)
        store = Store.open(directory / "plane.db", durable=durable, first=first_objects(now))
        undo.callback(store.close)
        if store.entries(CUSTOM_RESOURCE_DEFINITION.storage):
            schemas.load()
        opened = _Opened(lock, listener, store, authority, tokens)
        for identity in IDENTITIES:
            if identity != "admin":
                _write_kubeconfig(directory, identity, opened, listener.getsockname()[1])
        undo.pop_all()
        return opened


def _write_kubeconfig(directory: Path, identity: str, opened: _Opened, port: int) -> None:
    write_kubeconfig(
        _kubeconfig(directory, identity),
        server=f"https://{ADDRESS}:{port}",
        authority=opened.authority,
        identity=identity,
        token=opened.tokens.of(identity),
    )


def _kubeconfig(directory: Path, identity: str) -> Path:
    return directory / ("kubeconfig" if identity == "admin" else f"kubeconfig.{identity}")


def _bound(port: int) -> socket.socket:
    """A socket that has its port, and takes no connections yet."""
    found = socket.socket()
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((ADDRESS, port))
    except OSError as error:
        found.close()
        raise PortUnusable(f"cannot listen on {ADDRESS}:{port}: {error.strerror}; choose another port") from error
    return found
