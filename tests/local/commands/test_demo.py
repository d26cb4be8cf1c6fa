"""`kardinal demo`, as a newcomer types it."""

from __future__ import annotations

import signal

import pytest

from tests.resilience.processes import Shell


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
    assert printed.splitlines()[-1] == "all three environments run ghcr.io/acme/podinfo:6.12.0, verified"
    assert list(shell.temporary.iterdir()) == []


@pytest.mark.local_only("the demo has a plane of its own")
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 1), (signal.SIGTERM, 143)])
async def test_the_demo_is_ended_in_the_middle_and_leaves_nothing(
    shell: Shell, number: signal.Signals, code: int
) -> None:
    demo = await shell.start("kardinal", "demo", "--yes")
    await demo.says("HealthChecking")
    demo.send(number)
    assert await demo.ended() == code
    assert "Traceback" not in demo.output
    assert list(shell.temporary.iterdir()) == []
