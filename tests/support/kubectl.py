"""Real kubectl binaries, as many versions as this machine has.

A test that takes the fixture `kubectl` runs with the oldest, the newest and the one that `make assets` built, and with
`--kubectl=all` with every one; on a real server, which has nothing to prove, with the newest of all. Which versions
those were stands in the summary of the run; that none was found stands there too, because what did not run proves
nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from hack.kube.assets import locate

__all__ = ["Finished", "Kubectl", "kubectl_versions"]

_DEADLINE = 30.0
_PROPERTY = "kubectl"
_KNOWN = "KARDINAL_TEST_KUBECTLS"
"""Tells the workers of a run what its first process found, so that they need not look again."""


@dataclass(frozen=True)
class Finished:
    """How a kubectl call ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Kubectl:
    """One kubectl binary, pointed at one API server."""

    binary: Path
    kubeconfig: Path
    home: Path
    namespace: str = ""
    """The namespace it works in unless a call says otherwise; empty leaves that to the kubeconfig."""
    environment: dict[str, str] = field(default_factory=dict)

    async def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """Return what the call printed; it must succeed."""
        done = await self.attempt(*arguments, stdin=stdin)
        assert done.code == 0, f"kubectl {' '.join(arguments)} ended with {done.code}:\n{done.err}{done.out}"
        return done.out

    async def attempt(self, *arguments: str, stdin: str | None = None) -> Finished:
        """Run kubectl to its end, whatever that is."""
        process = await self.start(*arguments, stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL)
        try:
            async with asyncio.timeout(_DEADLINE):
                out, err = await process.communicate(None if stdin is None else stdin.encode())
        except TimeoutError:
            process.kill()
            await process.communicate()
            pytest.fail(f"kubectl {' '.join(arguments)} did not end within {_DEADLINE:g} s")
        return Finished(process.returncode or 0, out.decode(), err.decode())

    async def start(self, *arguments: str, stdin: int = asyncio.subprocess.DEVNULL) -> asyncio.subprocess.Process:
        """Begin a call whose output is a pipe, for who wants to read it line by line."""
        where = ("--namespace", self.namespace) if self.namespace and not _says_where(arguments) else ()
        # A home of its own: kubectl caches discovery documents there.
        ours = {"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.home)}
        return await asyncio.create_subprocess_exec(
            self.binary,
            *where,
            *arguments,
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=os.environ | ours | self.environment,
        )


def _says_where(arguments: Iterable[str]) -> bool:
    return any(argument.startswith(("-n", "--namespace", "-A", "--all-namespaces")) for argument in arguments)


@cache
def kubectl_versions() -> dict[str, Path]:
    """Every kubectl of this machine by its version, oldest first."""
    if (known := os.environ.get(_KNOWN)) is not None:
        return {version: Path(path) for version, path in json.loads(known).items()}
    candidates = list(dict.fromkeys(_candidates()))
    asked = [
        subprocess.Popen(
            [path, "version", "--client", "--output=json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        for path in candidates
    ]
    found: dict[str, Path] = {}
    for path, process in zip(candidates, asked, strict=True):
        out, _ = process.communicate()
        if process.returncode == 0:
            found.setdefault(json.loads(out)["clientVersion"]["gitVersion"].removeprefix("v"), path)
    versions = dict(sorted(found.items(), key=lambda item: _order(item[0])))
    os.environ[_KNOWN] = json.dumps({version: str(path) for version, path in versions.items()})
    return versions


def _candidates() -> Iterable[Path]:
    """Yield what was built, then any kubectl on PATH or beside the file that a kubectl on PATH really is."""
    if built := locate().binaries.get("kubectl"):
        yield built
    for directory in os.get_exec_path():
        for path in Path(directory).glob("kubectl"):
            for beside in (path.parent, path.resolve().parent):
                yield from sorted(beside.glob("kubectl.1.*"))
            yield path.resolve()


def _order(version: str) -> list[int]:
    return [int(part) if part.isdigit() else 0 for part in version.partition("-")[0].split(".")]


def _chosen(config: pytest.Config) -> list[str]:
    """Return the versions that this run is about."""
    versions = kubectl_versions()
    if config.getoption("kubectl") == "all":
        return list(versions)
    if config.getoption("target", "plane") != "plane":
        return list(versions)[-1:]
    built = locate().binaries.get("kubectl")
    others = [version for version, path in versions.items() if path != built]
    return [version for version in versions if version not in others[1:-1]]


def pytest_addoption(parser: pytest.Parser) -> None:
    choices = ["some", "all"]
    parser.addoption("--kubectl", choices=choices, default="some", help="oldest, newest and built, or every kubectl")


def pytest_configure(config: pytest.Config) -> None:
    # Asked once here; workers are started later and inherit the answer.
    kubectl_versions()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marked = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "kubectl" in metafunc.fixturenames and "kubectl" not in marked:
        chosen = _chosen(metafunc.config) or ["none found"]
        metafunc.parametrize("kubectl", chosen, indirect=True, ids=[f"kubectl-{version}" for version in chosen])


@pytest.fixture
def kubectl(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None], tmp_path: Path
) -> Callable[[Path], Kubectl]:
    """Return a function that makes a kubectl for a kubeconfig."""
    versions = kubectl_versions()
    if request.param not in versions:
        pytest.skip("there is no kubectl: put one on PATH, or `make assets` builds one")
    record_property(_PROPERTY, request.param)
    home = tmp_path / "kubectl-home"
    home.mkdir()
    return lambda kubeconfig: Kubectl(versions[request.param], kubeconfig, home)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which kubectl versions ran; the reports carry it, because workers are processes of their own."""
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, [])]
    ran = {value for report in reports for name, value in report.user_properties if name == _PROPERTY}
    if ran:
        terminalreporter.write_line(f"kubectl versions that ran: {', '.join(sorted(ran, key=_order))}")
    elif not kubectl_versions():
        terminalreporter.write_line("no kubectl was found: what needs it did not run")
