"""Which tests run on a real API server: everything that asks one, but for what only the local plane has.

A test that takes the fixture `api_server` or `install`, by whatever way, runs on either. One that is about the local
plane as a program (its directory, its processes, its own commands) says so with the mark `local_only` and a reason. One
that is about the logic of time (hours, and what happens at which instant) says so with `virtual_time`: beside a real
server, where programs otherwise live in real time, it keeps a clock that it can move. Of both there must stay few, so
they are counted, and `tests/house` holds each to a tenth.

The faults of hosts and Git servers (`tests/resilience/faults`) are not among either: the API server has no part in
them, and what they wait for would take a real one a quarter of an hour. Nor are tests with the mark `of_hosts`, which
repeat at another host what one host has shown on either server. Of these, the ones with the mark `every_host` run with
`--every-host` alone, which takes some minutes: what a host's API answers is held by the contract in `tests/hosts`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import pytest

from tests.support.target import Target

__all__ = ["Shares", "shares_of"]

_CONTRACT = "tests/local/contract/"
_FAULTS_OF_HOSTS = "tests/resilience/faults/"
_OF_HOSTS = "of_hosts"
_EVERY_HOST = "every_host"
_LOCAL_ONLY = "local_only"
_VIRTUAL_TIME = "virtual_time"

_REAL_SECONDS = 180
"""For a test on a real server, which shares a busy machine with six programs; the first test waits for their start."""

_EITHER = frozenset({"api_server", "install"})
"""The fixtures that answer for a test which API server it runs on."""


@dataclass(frozen=True, slots=True)
class Shares:
    """How many tests run programs on an API server, and how many of them need the local plane or move the time."""

    end_to_end: int
    local_only: int
    virtual_time: int


def shares_of(items: Iterable[pytest.Item]) -> Shares:
    chosen = [item for item in items if not _is_contract(item) and not _is_of_hosts(item)]
    local = sum(_is_local(item) for item in chosen)
    anywhere = [item for item in chosen if _runs_anywhere(item)]
    return Shares(len(anywhere) + local, local, sum(_is_marked(item, _VIRTUAL_TIME) for item in anywhere))


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kardinal")
    group.addoption("--every-host", action="store_true", help="repeat at every host what is shown at one")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{_LOCAL_ONLY}(reason): needs the local plane itself, for this reason")
    config.addinivalue_line("markers", f"{_VIRTUAL_TIME}(reason): moves its clock on a real server, too")
    config.addinivalue_line("markers", f"{_OF_HOSTS}: repeats at another host what one has shown; on the local plane")
    config.addinivalue_line("markers", f"{_EVERY_HOST}: the same, and only with --every-host")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[_SHARES] = shares_of(items)
    target: Target = config.getoption("target")
    if not config.getoption("every_host"):
        repeats = [item for item in items if item.get_closest_marker(_EVERY_HOST) is not None]
        config.hook.pytest_deselected(items=repeats)
        items[:] = [item for item in items if item.get_closest_marker(_EVERY_HOST) is None]
    if target.real:
        config.hook.pytest_deselected(items=[item for item in items if not _runs_on(target, item)])
        items[:] = [item for item in items if _runs_on(target, item)]
        # A real server ends its side of a TLS connection in its own time, which may be after the test's event loop;
        # that the programs close what they opened is held on the local plane, where a warning stays an error.
        for item in items:
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"))
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(_REAL_SECONDS))


def _runs_on(target: Target, item: pytest.Item) -> bool:
    return _is_contract(item) or (target is Target.ASSETS and _runs_anywhere(item) and not _is_of_hosts(item))


def _runs_anywhere(item: pytest.Item) -> bool:
    return not _EITHER.isdisjoint(getattr(item, "fixturenames", ())) and not _is_local(item)


def _is_local(item: pytest.Item) -> bool:
    return _is_marked(item, _LOCAL_ONLY)


def _is_marked(item: pytest.Item, name: str) -> bool:
    mark = item.get_closest_marker(name)
    if mark is not None and not mark.args:
        raise pytest.UsageError(f"{item.nodeid}: {name} needs a reason")
    return mark is not None


def _is_contract(item: pytest.Item) -> bool:
    return item.nodeid.startswith(_CONTRACT)


def _is_of_hosts(item: pytest.Item) -> bool:
    return item.nodeid.startswith(_FAULTS_OF_HOSTS) or any(
        item.get_closest_marker(mark) is not None for mark in (_OF_HOSTS, _EVERY_HOST)
    )


# What a worker has collected, the process that starts the workers has not: it is told at their end.


def pytest_sessionfinish(session: pytest.Session) -> None:
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None and _SHARES in session.config.stash:
        output["shares"] = asdict(session.config.stash[_SHARES])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    if found := getattr(node, "workeroutput", {}).get("shares"):
        node.config.stash[_SHARES] = Shares(**found)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    shares = config.stash.get(_SHARES, Shares(0, 0, 0))
    if not shares.end_to_end:
        return
    for mark, count, what in (
        (_LOCAL_ONLY, shares.local_only, "need the local plane itself"),
        (_VIRTUAL_TIME, shares.virtual_time, "move their clock on a real server, too"),
    ):
        share = count / shares.end_to_end
        terminalreporter.write_line(f"{mark}: {count} of {shares.end_to_end} end-to-end tests ({share:.1%}) {what}")


_SHARES = pytest.StashKey[Shares]()
