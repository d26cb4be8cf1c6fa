"""The commands of the README, typed as they stand there, in their order."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kardinal.promotion.kinds import BUNDLE, PROMOTION_STEP
from kardinal_local import sample
from tests.examples.transcript import differences, transcript
from tests.resilience.processes import DEADLINE, Shell, shell
from tests.support.clock import VirtualClock
from tests.support.commands import KARDINAL
from tests.support.kubectl import kubectl_versions
from tests.support.names import DEV, POLICIES, PROD, STAGING, TEAM
from tests.support.objects import bundle, environment, pipeline
from tests.support.programs import start_controller, start_simulator
from tests.support.repository import GitRepository
from tests.support.world import World

__all__ = ["shell"]

ROOT = Path(__file__).parents[2]
FOLLOWING = "kardinal watch podinfo"


def commands(heading: str) -> list[str]:
    """Return the commands of a section of the README, without what stands behind them for the reader."""
    section = (ROOT / "README.md").read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = "".join(re.findall(r"^```console\n(.*?)^```", section, re.DOTALL | re.MULTILINE)).splitlines()
    return [re.sub(r"\s{2,}#.*", "", line.removeprefix("$ ")) for line in lines if line.startswith("$ ")]


class Typist:
    """A shell in which one command is typed after the other."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def type(self, command: str) -> str:
        """Return what a command printed that succeeded; one that follows is ended when it says what to do next."""
        following = command == FOLLOWING
        # A shell without a terminal starts what is in its background deaf to Ctrl-C.
        line = f"({command} & echo pid $!; wait $!) 2>&1" if following else f"{{ {command}; }} 2>&1"
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f'{line}\necho "== $?"\n'.encode())
        printed: list[str] = []
        async with asyncio.timeout(DEADLINE):
            while not (text := (await self._process.stdout.readline()).decode()).startswith("== "):
                assert text, f"the shell ended in {command}:\n{''.join(printed)}"
                printed.append(text)
                if following and "kardinal pr merge 1" in text:
                    os.kill(int(printed[0].split()[1]), signal.SIGTERM)
        assert following or text == "== 0\n", f"{command}: {text}{''.join(printed)}"
        return "".join(printed)


@asynccontextmanager
async def _typist(shell: Shell, directory: Path, kubectl: Path) -> AsyncIterator[Typist]:
    programs = directory / "programs"
    programs.mkdir()
    (programs / "kubectl").symlink_to(kubectl)
    checkout = directory / "checkout"
    checkout.mkdir()
    installed = checkout / ".venv" / "bin"
    installed.mkdir(parents=True)
    (installed / "kardinal").symlink_to(KARDINAL)
    process = await asyncio.create_subprocess_exec(
        "bash",
        cwd=checkout,
        env={"HOME": str(shell.home), "PATH": f"{programs}:{os.environ['PATH']}", "LANG": "C.UTF-8", "USER": "dana"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Typist(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


@pytest.mark.usefixtures("commands")
@pytest.mark.local_only("the README starts a plane of its own")
@pytest.mark.timeout(180)
async def test_the_walkthrough_of_the_readme_ends_in_a_verified_bundle(shell: Shell, tmp_path: Path) -> None:
    kubectls = list(kubectl_versions().values())
    if not kubectls:
        pytest.skip("no kubectl on this machine")
    local = await shell.start("kardinal", "local", "up", "--simulate", "--port", "0")
    await local.says("ready")
    async with _typist(shell, tmp_path, kubectls[-1]) as typist:
        printed = {command: await typist.type(command) for command in commands("By hand")}
    assert "condition met" in printed['kubectl wait --for=condition=Ready "$bundle" --timeout=5m']
    assert "Verified in dev, staging, prod" in printed["kardinal status podinfo"]
    assert printed["git -C kardinal-sample/gitops.git log main"].count("Kardinal-Environment:") == 3
    assert "PASS" in printed["kardinal explain podinfo --env prod"]
    shown = transcript(ROOT / "docs" / "first-hour.md")
    exported = next(command for command in printed if command.startswith("export "))
    assert printed.pop(exported) == ""
    assert not differences(shown, printed)


@pytest.mark.parametrize(
    ("wanted", "printed", "agree"),
    [
        (["a", "b"], "a\nb\n", True),
        (["10:00:00  x-1795401318"], "12:34:56  x-1800000000\n", True),
        (["a", "…", "d"], "a\nb\nc\nd\n", True),
        (["…"], "a\n", True),
        (["a"], "a\nb\n", False),
        (["a", "d"], "a\nb\nd\n", False),
        (["…", "b", "…", "a"], "a\nb\n", False),
        (["x 1.2.3"], "x 1.2.4\n", False),
    ],
)
def test_a_transcript_that_is_not_what_was_printed_is_told(wanted: list[str], printed: str, *, agree: bool) -> None:
    assert (not differences({"x": wanted}, {"x": printed})) is agree


@pytest.mark.virtual_time("a Sunday")
async def test_the_gates_of_the_sample_are_open_on_a_sunday(
    world: World, repository: GitRepository, clock: VirtualClock
) -> None:
    sunday = datetime(2036, 3, 9, 12, 0, tzinfo=UTC)  # later than what a real API server stamps
    clock.turn_to(sunday)
    await start_controller(world)
    await start_simulator(world)
    gates = sample.org_gate(POLICIES), sample.schedule_gate(POLICIES, now=sunday)
    for gate in gates:
        gate["spec"]["match"] = {"paths": [f"environments/{PROD}"]}
    await world.apply(
        *gates,
        pipeline(repository, environments=[DEV, STAGING, environment(PROD, approval="pr-review")]),
        bundle("my-app-1"),
    )
    await world.wait_for(
        PROMOTION_STEP,
        f"my-app-1-{PROD}",
        lambda step: step.get("status", {}).get("state") == "WaitingForMerge",
        within=timedelta(minutes=2),
    )
    assert (await world.get(BUNDLE, "my-app-1", TEAM))["status"]["phase"] == "Promoting"


@pytest.mark.parametrize("day", range(7))
def test_the_schedule_gate_of_the_sample_is_open_for_three_days(day: int) -> None:
    now = datetime(2026, 3, 2, 23, 59, tzinfo=UTC) + timedelta(days=day)
    expression = sample.schedule_gate(POLICIES, now=now)["spec"]["expression"]
    for later in range(3):
        assert f"{now + timedelta(days=later):%A}" not in expression
