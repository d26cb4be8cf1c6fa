"""The summary names the kubectl versions that ran, or says that there was none."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kubectl import Kubectl, kubectl_versions

USER = """
async def test_that_uses_kubectl(kubectl, tmp_path):
    assert "hello" in await kubectl(tmp_path / "kubeconfig")("hello")
"""


@pytest.fixture
def alone(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.Pytester]:
    """Return a pytest of its own with the kubectl support, and with nothing but its directory `bin` on PATH."""
    monkeypatch.setenv("PATH", str(pytester.mkdir("bin")))
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytester.path))
    # The run sets it, and what it was is put back.
    monkeypatch.setenv("KARDINAL_TEST_KUBECTLS", "")
    monkeypatch.delenv("KARDINAL_TEST_KUBECTLS")
    kubectl_versions.cache_clear()
    pytester.makeini("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(USER)
    yield pytester
    kubectl_versions.cache_clear()


def install(path: Path, *, version: str) -> None:
    """Write a kubectl that knows its version and repeats everything else."""
    answer = f'{{"clientVersion": {{"gitVersion": "v{version}"}}}}'
    path.write_text(f"#!/bin/sh\n[ \"$1\" = version ] && echo '{answer}' || echo $1\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_the_versions_beside_kubectl_are_called_by_name(alone: pytest.Pytester) -> None:
    for name in ("1.27.3", "1.9.8", "1.33.1"):
        install(alone.path / "bin" / f"kubectl.{name.rpartition('.')[0]}", version=name)
    install(alone.path / "bin" / "kubectl", version="1.33.1")
    result = alone.runpytest_inprocess("-p", "tests.support.kubectl")

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["kubectl versions that ran: 1.9.8, 1.33.1"])


def test_all_versions_run_when_asked_for(alone: pytest.Pytester) -> None:
    for name in ("1.27.3", "1.9.8", "1.33.1"):
        install(alone.path / "bin" / f"kubectl.{name.rpartition('.')[0]}", version=name)
    install(alone.path / "bin" / "kubectl", version="1.34.0")
    result = alone.runpytest_inprocess("-p", "tests.support.kubectl", "--kubectl=all")

    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["kubectl versions that ran: 1.9.8, 1.27.3, 1.33.1, 1.34.0"])


def test_the_versions_behind_a_link_are_found(alone: pytest.Pytester) -> None:
    elsewhere = alone.mkdir("elsewhere")
    for name in ("1.31.0", "1.32.0"):
        install(elsewhere / f"kubectl.{name.rpartition('.')[0]}", version=name)
    (alone.path / "bin" / "kubectl").symlink_to(elsewhere / "kubectl.1.32")
    result = alone.runpytest_inprocess("-p", "tests.support.kubectl")

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["kubectl versions that ran: 1.31.0, 1.32.0"])


def test_no_kubectl_is_said_and_not_passed(alone: pytest.Pytester) -> None:
    result = alone.runpytest_inprocess("-p", "tests.support.kubectl")

    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["no kubectl was found: what needs it did not run"])


async def test_a_call_that_fails_shows_what_kubectl_said(tmp_path: Path) -> None:
    program = tmp_path / "kubectl"
    program.write_text("#!/bin/sh\necho 'it is broken' >&2\nexit 3\n")
    program.chmod(0o700)
    with pytest.raises(AssertionError, match=r"ended with 3:\s+it is broken"):
        await Kubectl(program, tmp_path / "kubeconfig", tmp_path)("get", "bundles")
