"""A person's ten minutes with kubectl, typed again on every server, with what it printed compared line by line.

The transcript is what the real server answered. `--record` writes it anew there.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from hack.kube.assets import locate
from kardinal.objects import JsonObject
from tests.local.contract.conftest import Cluster
from tests.local.contract.wire import DEFINITIONS, Api

TRANSCRIPT = Path(__file__).with_name("transcript.txt")
DEADLINE = 30.0

_SCRUBBED = (
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<uid>"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "<time>"),
    (re.compile(r"(resourceVersion: )\"[1-9]\d+\""), r'\1"<revision>"'),
    (re.compile(r"(?<=\s)(\d+[smhd])+(?=\s|$)"), "<age>"),
    # The width of a column depends on what was scrubbed.
    (re.compile(r"(?<=\S) {2,}"), "   "),
)


@dataclass(frozen=True)
class Typed:
    """One command, with the lines typed below it, and what it printed."""

    command: str
    below: tuple[str, ...]
    printed: tuple[str, ...]

    @property
    def script(self) -> str:
        # A command in the background is the shell itself, so that it can be interrupted.
        command = f"exec {self.command[:-1]}" if self.command.endswith("&") else self.command
        return "\n".join((command, *self.below))

    def __str__(self) -> str:
        return "\n".join((f"$ {self.command}", *(f"> {line}" for line in self.below), *self.printed))


def read(text: str) -> Iterator[Typed]:
    """The commands of a transcript."""
    for chunk in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *lines = chunk.removesuffix("\n").split("\n")
        below = tuple(line[2:] for line in lines if line.startswith("> "))
        yield Typed(command, below, tuple(line for line in lines if not line.startswith("> ")))


class Terminal:
    """Shells with kubectl and a kubeconfig."""

    def __init__(self, cluster: Cluster, home: Path) -> None:
        self._environment = {
            "PATH": f"{home}:{os.environ['PATH']}",
            "HOME": str(home),
            "KUBECONFIG": str(cluster.kubeconfig),
        }
        self._second: asyncio.subprocess.Process | None = None
        self._shown: list[bytes] = []

    async def type(self, typed: Typed) -> tuple[str, ...]:
        """What a command prints."""
        async with asyncio.timeout(DEADLINE):
            if typed.command.startswith("^C "):
                return await self._interrupt(after=int(typed.command.removeprefix("^C ")))
            process = await self._start(typed.script)
            if not typed.command.endswith("&"):
                out, _ = await process.communicate()
                return _lines(out)
            # The next command is typed by somebody who sees that the watch has begun.
            self._second = process
            await self._show(2)
            return ()

    async def close(self) -> None:
        if self._second is not None:
            with suppress(ProcessLookupError):
                self._second.kill()
            await self._second.communicate()

    async def _start(self, script: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            "bash",
            "-c",
            script,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )

    async def _show(self, lines: int) -> None:
        assert self._second is not None
        assert self._second.stdout is not None
        while len(self._shown) < lines:
            self._shown.append(await self._second.stdout.readuntil(b"\n"))

    async def _interrupt(self, *, after: int) -> tuple[str, ...]:
        await self._show(after)
        await self.close()
        return _lines(b"".join(self._shown))


def _lines(out: bytes) -> tuple[str, ...]:
    text = out.decode()
    for pattern, replacement in _SCRUBBED:
        text = pattern.sub(replacement, text)
    return tuple(line.rstrip() for line in text.splitlines())


@pytest.fixture
async def terminal(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Terminal]:
    binaries = locate().binaries
    if "kubectl" not in binaries:
        pytest.skip("the transcript is of kubectl 1.36: `make assets` builds it")
    home = tmp_path / "home"
    home.mkdir()
    (home / "kubectl").symlink_to(binaries["kubectl"])
    terminal = Terminal(cluster, home)
    yield terminal
    await terminal.close()


async def test_a_person_sees_the_same_on_every_server(
    api: Api, terminal: Terminal, definitions: list[JsonObject], pytestconfig: pytest.Config
) -> None:
    for definition in definitions:
        if (await api.silent.get(f"{DEFINITIONS}/{definition['metadata']['name']}")).status == 404:
            await api.silent.define(definition)
    text = TRANSCRIPT.read_text()
    seen = [Typed(one.command, one.below, await terminal.type(one)) for one in read(text)]
    if pytestconfig.getoption("record"):
        header = text[: text.index("\n$ ") + 1]
        TRANSCRIPT.write_text(header + "\n".join(map(str, seen)) + "\n")
        return
    wanted = list(read(text))
    assert len(wanted) > 40
    for typed, was in zip(wanted, seen, strict=True):
        assert str(was) == str(typed)
