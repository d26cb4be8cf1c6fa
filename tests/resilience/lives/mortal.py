"""A program of kardinal in a process of its own, which kills itself at a chosen effect.

An effect is a write to the API server, Events aside, the move of a reference of a repository, a push, or a write to the
API of a host. The process dies immediately before it, while it is under way, or immediately after it, by SIGKILL: no
line of the program runs any more, its locks stay, and its requests end without an answer. Before it dies it says where.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kardinal.git.lockfile import LockFile
from kardinal.git.meaning import Expected
from kardinal.git.mirror import MirrorBackend
from kardinal.git.refs import RefStore
from kardinal.kube import Client, load_connection
from kardinal.scm.http import HostClient
from kardinal_agent.options import AgentOptions
from kardinal_agent.program import Agent
from kardinal_controller.options import ControllerOptions
from kardinal_controller.program import ControlPlane
from tests.resilience.lives.clock import FastClock
from tests.support.names import POLICIES
from tests.support.registry import EXTENSIONS

__all__ = ["Kill", "Moment", "Part", "Settings", "run"]

Part = Literal["everything", "controller", "agent"]
"""The part of kardinal in one process; `everything` is the controller with the agent in it."""

_NO_EFFECT = re.compile(r"/(events|selfsubject\w+|subjectaccessreviews|tokenreviews)\b")

_AT_HOST = re.compile(r"^git: push|https?://")

Moment = Literal["before", "during", "after"]

POLL = 20.0
"""Seconds between two looks at the open pull requests of a host."""


@dataclass(frozen=True)
class Kill:
    """The death of a process: at its `effect`-th effect; `delay`: the real seconds from the beginning of one to it.

    `at_host`: only pushes and writes to the API of a host count.
    """

    effect: int
    moment: Moment
    delay: float
    at_host: bool = False


@dataclass(frozen=True)
class Settings:
    """Everything that a process needs to know; its output is added to `log`, its death to `deaths`."""

    part: Part
    kubeconfig: Path
    directory: Path
    clock: FastClock
    kill: Kill | None
    log: Path
    deaths: Path


def run(settings: Settings) -> None:
    """Run a program until SIGTERM or its death."""
    log = os.open(settings.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for stream in (1, 2):
        os.dup2(log, stream)
    asyncio.run(_run(settings))


async def _run(settings: Settings) -> None:
    async with Client(await load_connection(settings.kubeconfig), user_agent=f"kardinal-{settings.part}") as client:
        if settings.kill is not None:
            Effects(settings.part, settings.kill, settings.deaths).count_those_of(client)
        await _program(settings, client).manager.run()


def _program(settings: Settings, client: Client) -> ControlPlane | Agent:
    agent = AgentOptions(git_cache_dir=settings.directory, allow_local_repositories=True, scm_poll_interval=POLL)
    if settings.part == "agent":
        return Agent(agent, client, clock=settings.clock, extensions=EXTENSIONS)
    options = ControllerOptions(
        policy_namespaces=(POLICIES,),
        agent=agent,
        standalone=settings.part == "everything",
    )
    return ControlPlane(options, client, clock=settings.clock, extensions=EXTENSIONS)


class Effects:
    """Counts the effects of a process, and ends it at one of them."""

    def __init__(self, part: Part, kill: Kill, deaths: Path) -> None:
        self._part = part
        self._kill = kill
        self._deaths = os.open(deaths, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._count = 0
        self._lock = threading.Lock()

    def count_those_of(self, client: Client) -> None:
        """Count from now on what this process does to the API server, to repositories and to hosts."""
        transport = client._transport
        request = transport.request
        send = HostClient._send
        replace = LockFile.replace
        forget = RefStore.forget
        push = MirrorBackend._push

        async def requested(method: str, path: str, **options: Any) -> Any:
            if method == "GET" or _NO_EFFECT.search(path):
                return await request(method, path, **options)
            with self._effect(f"{method} {path}"):
                return await request(method, path, **options)

        async def sent(host: HostClient, operation: str, method: str, url: str, *arguments: Any) -> Any:
            if method == "GET":
                return await send(host, operation, method, url, *arguments)
            with self._effect(f"{method} {url}"):
                return await send(host, operation, method, url, *arguments)

        def replaced(lock: LockFile, content: bytes) -> None:
            with self._effect(f"git: write {_ref(lock._path)}"):
                replace(lock, content)

        def forgotten(store: RefStore, name: str) -> None:
            with self._effect(f"git: delete {name}"):
                forget(store, name)

        def pushed(mirror: MirrorBackend, new: str | None, expected: Expected) -> None:
            with self._effect(f"git: push {expected.ref}"):
                push(mirror, new, expected)

        setattr(transport, "request", requested)  # noqa: B010 - a method of this one connection
        for owner, name, method in (
            (HostClient, "_send", sent),
            (LockFile, "replace", replaced),
            (RefStore, "forget", forgotten),
            (MirrorBackend, "_push", pushed),
        ):
            setattr(owner, name, method)  # of this process

    @contextmanager
    def _effect(self, what: str) -> Iterator[None]:
        with self._lock:
            counts = not self._kill.at_host or _AT_HOST.search(what) is not None
            self._count += counts
            due = counts and self._count >= self._kill.effect
        if due and self._kill.moment == "before":
            self._die(f"before {what}")
        if due and self._kill.moment == "during":
            threading.Timer(self._kill.delay, self._die, (f"during {what}",)).start()
        yield
        if due and self._kill.moment == "after":
            self._die(f"after {what}")

    def _die(self, where: str) -> None:
        os.write(self._deaths, f"{self._part} {where}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)


def _ref(path: str) -> str:
    """Return the name of a reference, or that of the file with the packed ones."""
    return path[path.index("refs/") :] if "refs/" in path else os.path.basename(path)
