"""Real processes in real time: what a person starts in a shell, and what happens to it.

A test in a world moves time and stops programs politely. What it cannot show is a death between two instructions, two
programs that really run at once, and the command line itself. Here everything is a process of its own, and all a test
has of it is what anybody has: its output, its exit code, its API over HTTPS, and signals.

Nothing waits for a time to pass: a test waits for a line of output, a watch event or a file. The traps: a shell has a
home and a temporary directory of its own, so that what a killed process leaves lies where the test may look at it; and
its PATH holds neither kubectl nor kustomize, so that the simulator renders everywhere with what it has built in.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kardinal.kube import Client, ConnectionFailed, load_connection
from kardinal.objects import NAMESPACE, JsonObject, ResourceType
from kardinal_local.plane.directory import holder
from tests.support.names import TEAM
from tests.support.objects import namespace

__all__ = ["DEADLINE", "IN_TEAM", "Local", "Process", "Shell", "make_namespace", "phase", "shell", "state", "wait_for"]

DEADLINE = 100.0
"""Seconds of real time for anything to happen."""

_LOOK_AGAIN = 0.01
"""Seconds between two looks at a file, whose changes have no event."""

_NOT_INHERITED = {"KUBECONFIG", "KUBERNETES_SERVICE_HOST", "XDG_STATE_HOME"}
"""Environment variables that would lead a program out of its shell."""

IN_TEAM = ("--namespace", TEAM)
"""For commands about the team's objects, which are not where `kardinal local up` points a person to."""

log = logging.getLogger(__name__)


class Process:
    """A program that was started, and everything it has printed."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.lines: list[str] = []
        self._process = process
        self._news = asyncio.Event()
        self._reading = asyncio.create_task(self._read(), name=f"read {name}")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    @property
    def running(self) -> bool:
        return self._process.returncode is None

    def kill(self) -> None:
        """End it between any two instructions."""
        self.send(signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        if self.running:
            self._process.send_signal(number)

    async def says(self, text: str) -> str:
        """Return the first line that contains `text`, as soon as there is one."""
        try:
            async with asyncio.timeout(DEADLINE):
                while not (found := [line for line in self.lines if text in line]):
                    if self._reading.done():
                        pytest.fail(f"{self.name} ended without saying {text!r}:\n{self.output}", pytrace=False)
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            pytest.fail(f"{self.name} does not say {text!r}:\n{self.output}", pytrace=False)
        return found[0]

    async def ended(self) -> int:
        """Its exit code, once it has ended and everything it printed is here."""
        try:
            async with asyncio.timeout(DEADLINE):
                await self._reading
                return await self._process.wait()
        except TimeoutError:
            pytest.fail(f"{self.name} does not end:\n{self.output}", pytrace=False)

    async def close(self) -> None:
        """End it if it still runs, and keep its output for the report of a failed test."""
        left_running = self.running
        self.kill()
        code = await self.ended()
        log.warning("%s %s:\n%s", self.name, "was still running" if left_running else f"ended with {code}", self.output)

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self.lines.append(line.decode(errors="replace").removesuffix("\n"))
            self._news.set()
        self._news.set()


class Shell:
    """Starts programs as a person would who has nothing but kardinal; see the fixture `shell`."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "home"
        self.temporary = directory / "temporary"
        self._started: list[Process] = []
        self.programs = Path(sys.executable).parent
        self.kardinal = self.programs / "kardinal"
        """The command `kardinal`: the installed one, or one that stands for it (`tests/support/commands.py`)."""
        self.tools: tuple[Path, ...] = ()
        """Directories whose programs are found besides."""
        for made in (self.home, self.temporary):
            made.mkdir(parents=True)

    async def start(self, program: str, *arguments: str | Path, kubeconfig: Path | None = None) -> Process:
        """Start a program of this installation, or another one by its path; it is killed with the shell."""
        environment = {
            **{name: value for name, value in os.environ.items() if name not in _NOT_INHERITED},
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "PATH": os.pathsep.join(map(str, (self.programs, *self.tools))),
            "NO_COLOR": "1",
            **({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {}),
        }
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            # Tests that were put into the background by a shell ignore Ctrl-C, and so would everything they start.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        process = await asyncio.create_subprocess_exec(
            self.programs / program,
            *arguments,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        started = Process(" ".join([program, *map(str, arguments)]), process)
        self._started.append(started)
        return started

    async def run(self, program: str, *arguments: str | Path, kubeconfig: Path | None = None, code: int = 0) -> str:
        """Return what a program printed that ended with `code`."""
        called = str(self.kardinal) if program == "kardinal" else program
        process = await self.start(called, *arguments, kubeconfig=kubeconfig)
        ended = await process.ended()
        assert ended == code, f"{process.name} ended with {ended}:\n{process.output}"
        return process.output

    async def agent(self, shard: str, *, kubeconfig: Path) -> Process:
        """Start an agent of a shard."""
        return await self.start(
            "kardinal-agent",
            f"--shard={shard}",
            f"--control-plane-kubeconfig={kubeconfig}",
            f"--git-cache-dir={self.temporary / f'mirrors-{shard}'}",
            "--allow-local-repositories",
            "--metrics-bind-address=127.0.0.1:0",
            "--health-probe-bind-address=127.0.0.1:0",
        )

    async def close(self) -> None:
        for process in reversed(self._started):
            await process.close()


class Local:
    """`kardinal local up` on one directory, as often as it is started there."""

    process: Process

    def __init__(self, shell: Shell, directory: Path, *options: str) -> None:
        self.directory = directory
        self._shell = shell
        self._options = options

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    def kubeconfig_for(self, identity: str) -> Path:
        return self.directory / f"kubeconfig.{identity}"

    async def up(self) -> None:
        """Start, and return when everything runs."""
        await self.begin()
        await self.process.says("ready")

    async def begin(self) -> None:
        """Start, and return as soon as the API server answers."""
        port = self.directory / "port"
        written = _written_at(port)
        # The directory remembers its port from the second start on.
        options = ("--port", "0", *self._options) if written is None else self._options
        called = str(self._shell.kardinal)
        self.process = await self._shell.start(called, "local", "up", "--dir", self.directory, *options)
        async with asyncio.timeout(DEADLINE):
            while _written_at(port) == written:
                assert self.process.running, self.process.output
                await asyncio.sleep(_LOOK_AGAIN)

    @property
    def pid(self) -> int:
        """The process that serves the directory: of a shell that forks, not the one which was started."""
        found = holder(self.directory)
        assert found is not None, f"no process serves {self.directory}"
        return found

    async def kill(self) -> None:
        """End it between any two instructions; returns when it has let go of its directory."""
        if self.process.running:
            os.kill(self.pid, signal.SIGKILL)
        await self.process.ended()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        async with Client(await load_connection(self.kubeconfig), user_agent="kardinal-test") as client:
            yield client

    async def kardinal(self, *arguments: str) -> str:
        """Return what a command printed that was called with this kubeconfig, and succeeded."""
        return await self._shell.run("kardinal", *arguments, kubeconfig=self.kubeconfig)


def _written_at(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


async def make_namespace(client: Client) -> None:
    """Let there be the namespace of the team, which a new installation does not have."""
    await client.apply(NAMESPACE, namespace(TEAM), field_manager="test")


async def wait_for(
    client: Client,
    resource: ResourceType,
    accepts: Callable[[JsonObject], bool],
    *names: str,
    namespace: str = TEAM,
) -> None:
    """Return when a watch has shown each of the objects in a state that `accepts` says yes to."""
    missing: dict[str, JsonObject] = {name: {} for name in names}
    try:
        async with asyncio.timeout(DEADLINE), client.watch(resource, namespace, initial_events=True) as events:
            async for event in events:
                name = event.object["metadata"].get("name", "")
                if name in missing:
                    missing[name] = event.object.get("status") or {}
                    if accepts(event.object):
                        del missing[name]
                    if not missing:
                        return
    except (TimeoutError, ConnectionFailed) as error:
        pytest.fail(f"{error!r} while waiting for {resource.plural}: {missing}", pytrace=False)
    pytest.fail(f"the watch ended while waiting for {resource.plural}: {missing}", pytrace=False)


def phase(wanted: str) -> Callable[[JsonObject], bool]:
    """Return whether a Bundle is in a phase."""
    return lambda found: (found.get("status") or {}).get("phase") == wanted


def state(*wanted: str) -> Callable[[JsonObject], bool]:
    """Return whether a PromotionStep is in one of some states."""
    return lambda found: (found.get("status") or {}).get("state") in wanted


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    """Yield a shell whose programs are ended with the test."""
    shell = Shell(tmp_path)
    yield shell
    await shell.close()
