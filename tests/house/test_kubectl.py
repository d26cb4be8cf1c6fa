"""The summary names the kubectl versions that ran, or says that there was none."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.support.kubectl import Kubectl

USER = """
async def test_that_uses_kubectl(kubectl, tmp_path):
    assert "hello" in await kubectl(tmp_path / "kubeconfig")("hello")
"""


@pytest.fixture
def alone(pytester: pytest.Pytester, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A pytest of its own with the kubectl support, and with nothing but its directory `bin` on PATH."""
    monkeypatch.setenv("PYTHONPATH", str(pytestconfig.rootpath))
    monkeypatch.setenv("PATH", str(pytester.mkdir("bin")))
    pytester.makeini("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(USER)
    return pytester


def install(path: Path) -> None:
    path.write_text("#!/bin/sh\necho $1\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_the_versions_beside_kubectl_are_called_by_name(alone: pytest.Pytester) -> None:
    for name in ("kubectl", "kubectl.1.27", "kubectl.1.32", "kubectl.1.33"):
        install(alone.path / "bin" / name)
    result = alone.runpytest_subprocess("-p", "tests.support.kubectl")

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["kubectl versions that ran: 1.32, 1.33"])


def test_a_lone_kubectl_is_used_as_it_is(alone: pytest.Pytester) -> None:
    install(alone.path / "bin" / "kubectl")
    result = alone.runpytest_subprocess("-p", "tests.support.kubectl")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["kubectl versions that ran: on PATH"])


def test_no_kubectl_is_said_and_not_passed(alone: pytest.Pytester) -> None:
    result = alone.runpytest_subprocess("-p", "tests.support.kubectl")

    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["no kubectl on PATH: what needs it did not run"])


async def test_a_call_that_fails_shows_what_kubectl_said(tmp_path: Path) -> None:
    program = tmp_path / "kubectl"
    program.write_text("#!/bin/sh\necho 'it is broken' >&2\nexit 3\n")
    program.chmod(0o700)
    with pytest.raises(AssertionError, match=r"ended with 3:\s+it is broken"):
        await Kubectl(program, tmp_path / "kubeconfig", tmp_path)("get", "bundles")
