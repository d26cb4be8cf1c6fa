"""Real kubectl binaries, as many versions as this machine has.

A test that takes the fixture `kubectl` runs once per version that kardinal promises to work with. Which versions those
were stands in the summary of the run; that none was found stands there too, because what did not run proves nothing.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["Finished", "Kubectl", "kubectl_versions"]

PROMISED = range(31, 34)
"""The minor versions of kubectl 1.x that the local plane promises to serve."""

_DEADLINE = 30.0
_PROPERTY = "kubectl"


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

    async def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """What the call printed; it must succeed."""
        done = await self.attempt(*arguments, stdin=stdin)
        assert done.code == 0, f"kubectl {' '.join(arguments)} ended with {done.code}:\n{done.err}{done.out}"
        return done.out

    async def attempt(self, *arguments: str, stdin: str | None = None) -> Finished:
        """Run kubectl to its end, whatever that is."""
        process = await asyncio.create_subprocess_exec(
            self.binary,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # A home of its own: kubectl caches discovery documents there.
            env=os.environ | {"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.home)},
        )
        try:
            async with asyncio.timeout(_DEADLINE):
                out, err = await process.communicate(None if stdin is None else stdin.encode())
        except TimeoutError:
            process.kill()
            await process.communicate()
            pytest.fail(f"kubectl {' '.join(arguments)} did not end within {_DEADLINE:g} s")
        return Finished(process.returncode or 0, out.decode(), err.decode())


def kubectl_versions() -> dict[str, Path]:
    """The binaries of promised versions: those named kubectl.1.* beside the kubectl on PATH, or that one itself."""
    found = shutil.which("kubectl")
    if found is None:
        return {}
    on_path = Path(found).resolve()
    named = {path.name.removeprefix("kubectl."): path for path in sorted(on_path.parent.glob("kubectl.1.*"))}
    promised = {version: path for version, path in named.items() if _minor(version) in PROMISED}
    return promised or {"on PATH": on_path}


def _minor(version: str) -> int | None:
    matched = re.fullmatch(r"1\.(\d+)", version)
    return int(matched[1]) if matched else None


_VERSIONS = kubectl_versions()


@pytest.fixture(params=_VERSIONS or ["none found"], ids=lambda version: f"kubectl-{version}")
def kubectl(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None], tmp_path: Path
) -> Callable[[Path], Kubectl]:
    """Makes a kubectl for a kubeconfig."""
    if request.param not in _VERSIONS:
        pytest.skip("no kubectl on PATH")
    record_property(_PROPERTY, request.param)
    home = tmp_path / "kubectl-home"
    home.mkdir()
    return lambda kubeconfig: Kubectl(_VERSIONS[request.param], kubeconfig, home)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which kubectl versions ran; the reports carry it, because workers are processes of their own."""
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, [])]
    ran = {value for report in reports for name, value in report.user_properties if name == _PROPERTY}
    if ran:
        terminalreporter.write_line(f"kubectl versions that ran: {', '.join(sorted(ran))}")
    elif not _VERSIONS:
        terminalreporter.write_line("no kubectl on PATH: what needs it did not run")
