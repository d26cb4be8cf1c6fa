"""A program of kardinal in a process of its own, which kills itself at a chosen effect.

An effect is a write to the API server, Events aside, or the move of a reference of a repository. The process dies
immediately before or immediately after it, by SIGKILL: no line of the program runs any more, its locks stay, and its
requests end without an answer. Before it dies it says where.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kardinal.git.lockfile import LockFile
from kardinal.git.refs import RefStore
from kardinal.kube import Client, load_connection
from kardinal_agent.program import Agent, AgentOptions
from kardinal_controller.program import Controller, ControllerOptions
from tests.resilience.lives.clock import FastClock
from tests.support.names import POLICIES
from tests.support.registry import EXTENSIONS

__all__ = ["Kill", "Part", "Settings", "run"]

Part = Literal["everything", "controller", "agent"]
"""The part of kardinal in one process; `everything` is the controller with the agent in it."""

_NO_EFFECT = re.compile(r"/(events|selfsubject\w+|subjectaccessreviews|tokenreviews)\b")


@dataclass(frozen=True)
class Kill:
    """The death of a process: at its `effect`-th effect, before or after."""

    effect: int
    after: bool


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


def _program(settings: Settings, client: Client) -> Controller | Agent:
    if settings.part == "agent":
        agent = AgentOptions(git_cache_dir=settings.directory, allow_local_repositories=True)
        return Agent(agent, client, clock=settings.clock, extensions=EXTENSIONS)
    options = ControllerOptions(
        policy_namespaces=(POLICIES,),
        allow_local_repositories=True,
        standalone=settings.part == "everything",
        git_cache_dir=settings.directory,
    )
    return Controller(options, client, clock=settings.clock, extensions=EXTENSIONS)


class Effects:
    """Counts the effects of a process, and ends it at one of them."""

    def __init__(self, part: Part, kill: Kill, deaths: Path) -> None:
        self._part = part
        self._kill = kill
        self._deaths = os.open(deaths, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._count = 0
        self._lock = threading.Lock()

    def count_those_of(self, client: Client) -> None:
        """Count from now on what this process does to the API server and to repositories."""
        transport = client._transport
        request = transport.request

        async def counted(method: str, path: str, **options: Any) -> Any:
            if method == "GET" or _NO_EFFECT.search(path):
                return await request(method, path, **options)
            number = self._before(f"{method} {path}")
            answer = await request(method, path, **options)
            self._after(number, f"{method} {path}")
            return answer

        setattr(transport, "request", counted)  # noqa: B010 - a method of this one connection
        replace, forget = LockFile.replace, RefStore.forget

        def replaced(lock: LockFile, content: bytes) -> None:
            self._around(f"git: write {_ref(lock._path)}", lambda: replace(lock, content))

        def forgotten(store: RefStore, name: str) -> None:
            self._around(f"git: delete {name}", lambda: forget(store, name))

        setattr(LockFile, "replace", replaced)  # noqa: B010 - of this process
        setattr(RefStore, "forget", forgotten)  # noqa: B010 - of this process

    def _around(self, what: str, act: Callable[[], None]) -> None:
        number = self._before(what)
        act()
        self._after(number, what)

    def _before(self, what: str) -> int:
        with self._lock:
            self._count += 1
            number = self._count
        if number >= self._kill.effect and not self._kill.after:
            self._die(f"before {what}")
        return number

    def _after(self, number: int, what: str) -> None:
        if number >= self._kill.effect and self._kill.after:
            self._die(f"after {what}")

    def _die(self, where: str) -> None:
        os.write(self._deaths, f"{self._part} {where}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)


def _ref(path: str) -> str:
    return path[path.index("refs/") :]
