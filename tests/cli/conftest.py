"""Calling `kardinal` as a person does: another process, its exit code and what it printed."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.support.commands import KARDINAL
from tests.support.names import TEAM
from tests.support.world import World

DEADLINE = 30.0


@dataclass(frozen=True)
class Finished:
    code: int
    out: str
    err: str


class Cli:
    """The command, pointed at one API server."""

    def __init__(self, kubeconfig: Path, directory: Path) -> None:
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "KUBECONFIG": str(kubeconfig),
            "LANG": "C.UTF-8",
            "USER": "tester",
        }
        self._directory = directory

    def within(self, directory: Path) -> Cli:
        """Return the same command as it is run in another directory."""
        other = type(self)(self._directory, directory)
        other.environment = self.environment
        return other

    async def attempt(self, *arguments: str) -> Finished:
        """Run to the end, whatever that is."""
        process = await asyncio.create_subprocess_exec(
            KARDINAL,
            *arguments,
            cwd=self._directory,
            env=self.environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(DEADLINE):
            out, err = await process.communicate()
        return Finished(process.returncode or 0, out.decode(), err.decode())

    async def __call__(self, *arguments: str) -> str:
        """Return what the command printed; it must succeed."""
        done = await self.attempt(*arguments)
        assert done.code == 0, f"kardinal {' '.join(arguments)} ended with {done.code}:\n{done.err}{done.out}"
        return done.out


@pytest.fixture(scope="session", autouse=True)
def commands_of_this_room(commands: None) -> None:
    """Have a server of commands for those that are called without the fixture `cli`, too."""


@pytest.fixture
def cli(commands: None, world: World) -> Cli:
    return Cli(*home_of(world))


def home_of(world: World) -> tuple[Path, Path]:
    """Make a home of a user of a world; returns the kubeconfig in it, and the home."""
    home = world.directory / "home"
    home.mkdir()
    kubeconfig = home / "kubeconfig"
    kubeconfig.write_text(_in_namespace(TEAM, world.server.kubeconfig.read_text()))
    return kubeconfig, home


def _in_namespace(namespace: str, kubeconfig: str) -> str:
    """Set the namespace of the contexts, as `kubectl config set-context --current --namespace` does."""
    document = yaml.safe_load(kubeconfig)
    for entry in document["contexts"]:
        entry["context"]["namespace"] = namespace
    return yaml.safe_dump(document)
