"""`kardinal demo`, as a newcomer types it."""

from __future__ import annotations

import re
import signal

import pytest

from tests.cli.conftest import Cli
from tests.cli.terminal import terminal
from tests.resilience.processes import Shell
from tests.support.commands import KARDINAL


@pytest.mark.local_only("the demo has a plane of its own")
@pytest.mark.timeout(180)
async def test_the_demo_walks_through_three_environments_and_leaves_nothing(shell: Shell) -> None:
    printed = await shell.run("kardinal", "demo", "--yes")
    for environment in ("dev", "staging", "prod"):
        assert f"Kardinal-Environment: {environment}" in printed
        (states,) = [line for line in printed.splitlines() if line.startswith(f"  {environment} ")]
        assert "Verified" in states
    assert "gate staging-soak  FAIL" in printed
    assert "gate staging-soak  PASS" in printed
    for heading in ("Policy Gates", "Artifact", "Upstream Verification", "Changes"):
        assert f"\n### {heading}\n" in printed
    assert '  -    newTag: "6.11.0"\n  +    newTag: "6.12.0"' in printed
    assert "all three environments run ghcr.io/acme/podinfo:6.12.0, verified\n\nwhat to try next:\n" in printed
    # The diff of prod is there before the merge, and nothing of it is for browsers.
    before, _, _ = printed.partition("merged as")
    assert "Diff:\n" in before
    assert '-    newTag: "6.11.0"\n+    newTag: "6.12.0"' in before
    assert not re.search(r"&#?\w+;|</?details>|<!--", printed)
    assert list(shell.temporary.iterdir()) == []


@pytest.mark.local_only("the demo has a plane of its own")
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 1), (signal.SIGTERM, 143)])
async def test_the_demo_is_ended_in_the_middle_and_leaves_nothing(
    shell: Shell, number: signal.Signals, code: int
) -> None:
    demo = await shell.start(str(KARDINAL), "demo", "--yes")
    await demo.says("HealthChecking")
    demo.send(number)
    assert await demo.ended() == code
    assert "Traceback" not in demo.output
    assert list(shell.temporary.iterdir()) == []


@pytest.mark.local_only("the demo has a plane of its own")
@pytest.mark.timeout(180)
@pytest.mark.usefixtures("commands")
async def test_a_person_at_a_terminal_is_asked_until_the_answer_is_yes(shell: Shell) -> None:
    home = Cli(shell.home / "none", shell.home)
    home.environment |= {"TMPDIR": str(shell.temporary), "PATH": str(shell.programs)}
    async with terminal(home, "demo", columns=80) as screen:
        await screen.says("staging-soak [org]")
        await screen.says("Merge it, as its reviewer? [Y/n]: ")
        screen.type("n\n")
        await screen.says("It stays open")
        screen.type("\n")
        await screen.says("Press Enter to stop.")
        screen.type("\n")
        assert await screen.ended() == 0
    assert screen.text.count("[Y/n]") == 2
    assert "all three environments run" in screen.text
    assert list(shell.temporary.iterdir()) == []
