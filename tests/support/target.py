"""Which API server a run of the tests is held by.

The default is the local plane, one per test. `--target=assets` starts a real kube-apiserver per worker; an explicit
kubeconfig is taken with `--target=kubeconfig` only, and only by someone who says that they know what the tests do to a
cluster: a developer's current context is never picked up silently.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import pytest

from hack.kube.launcher import control_plane
from tests.support.names import RUN

__all__ = ["Target"]

DEFINITIONS = Path(__file__).parents[2] / "crds"

_ACKNOWLEDGED = "KARDINAL_CONTRACT_I_KNOW"


class Target(StrEnum):
    """The server that answers."""

    PLANE = "plane"
    ASSETS = "assets"
    KUBECONFIG = "kubeconfig"

    @property
    def real(self) -> bool:
        return self is not Target.PLANE


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kardinal")
    group.addoption("--target", type=Target, choices=list(Target), default=Target.PLANE, help="which API server")
    group.addoption("--soak", action="store_true", help="hours instead of seconds, where a test is about many times")
    group.addoption("--record", action="store_true", help="store what the real server answers in tests/local/contract")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "covers(area, verb, outcome): what a contract case is about")
    config.addinivalue_line("markers", "differs(row): asserts both sides of a row of tests/local/contract/ledger.yaml")
    target = config.getoption("target")
    if config.getoption("record") and not target.real:
        raise pytest.UsageError("--record stores the answers of a real server: add --target=assets")
    if target is Target.KUBECONFIG and (os.environ.get(_ACKNOWLEDGED) != "1" or not os.environ.get("KUBECONFIG")):
        raise pytest.UsageError(
            "--target=kubeconfig writes to and deletes from the cluster that KUBECONFIG names: "
            f"set KUBECONFIG, and {_ACKNOWLEDGED}=1 to say that this is what you want"
        )


def pytest_report_header(config: pytest.Config) -> str | None:
    return f"names of this run end in -{RUN}" if config.getoption("target").real else None


@pytest.fixture(scope="session")
def target(pytestconfig: pytest.Config) -> Target:
    """Return the server that this run asks."""
    found: Target = pytestconfig.getoption("target")
    return found


@pytest.fixture(scope="session")
def soak(pytestconfig: pytest.Config) -> bool:
    """Return whether tests that repeat (kills, hostile requests) do so for as long as a soak of an hour needs."""
    wanted: bool = pytestconfig.getoption("soak")
    return wanted


@pytest.fixture(scope="session")
def real_kubeconfig(target: Target) -> Iterator[Path]:
    """Return the administrator's kubeconfig of this worker's real server."""
    if target is Target.KUBECONFIG:
        yield Path(os.environ["KUBECONFIG"])
        return
    with control_plane(nodes=True, definitions=DEFINITIONS) as kubeconfig:
        yield kubeconfig
