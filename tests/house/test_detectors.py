"""Each detector that guards the other tests fires on what it is there for.

The leaks run in a pytest of their own, because a detector that works fails the test it watches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from blockbuster import BlockingError

import kardinal
from kardinal.git import GitRunner
from kardinal.git.local import LocalBackend
from kardinal.processes.threads import BlockingCallOnLoop
from kardinal.tree.repository_url import RepositoryURL
from tests.support.repository import GitRepository

LEAKING_TESTS = """
import asyncio
import socket
import tempfile
import threading

import pytest

from tests.support import leaks

KEPT = []
leaks.GRACE = 0.5  # Nothing here goes by itself.


async def test_task():
    KEPT.append(asyncio.create_task(asyncio.Event().wait(), name="forgotten-watch"))


@pytest.fixture
async def forgetful():
    KEPT.append(asyncio.create_task(asyncio.Event().wait(), name="forgotten-informer"))


async def test_task_of_a_fixture(forgetful):
    pass


def test_socket():
    KEPT.append(socket.create_server(("127.0.0.1", 0)))


def test_file(tmp_path):
    KEPT.append((tmp_path / "forgotten.log").open("w"))


def test_thread():
    threading.Thread(target=threading.Event().wait, name="forgotten-worker", daemon=True).start()


def test_temporary_directory():
    tempfile.mkdtemp(prefix="forgotten-")


async def test_that_ends_what_it_starts(tmp_path):
    with tempfile.TemporaryDirectory(), socket.create_server(("127.0.0.1", 0)):
        await asyncio.to_thread((tmp_path / "file").write_text, "written")
        await asyncio.create_task(asyncio.sleep(0))


def test_after_the_leaks():
    pass
"""

COMPLAINTS = {
    "test_task": "left behind: running task 'forgotten-watch' (Event.wait at *",
    "test_task_of_a_fixture": "left behind: running task 'forgotten-informer' (Event.wait at *",
    "test_socket": "left behind: open socket ('127.0.0.1', *",
    "test_file": "left behind: open file *forgotten.log (descriptor *",
    "test_thread": "left behind: running thread 'forgotten-worker'",
    "test_temporary_directory": "left behind: temporary directory 'forgotten-*",
}


def test_a_leak_fails_the_test_that_made_it_and_no_other(
    pytester: pytest.Pytester, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(pytestconfig.rootpath))
    pytester.makepyfile(LEAKING_TESTS)
    pytester.makeini("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n")
    # A process of its own, which takes the leaks with it.
    result = pytester.runpytest_subprocess("-p", "tests.support.leaks")

    result.assert_outcomes(passed=len(COMPLAINTS) + 2, errors=len(COMPLAINTS))
    for name, complaint in COMPLAINTS.items():
        result.stdout.fnmatch_lines([f"*ERROR at teardown of {name} *", f"*{complaint}"])


BLOCKING_CALLS = {
    "read": "__import__('pathlib').Path(__file__).read_text()",
    "sleep": "__import__('time').sleep(0)",
    "database": "__import__('sqlite3').connect(':memory:').close()",
    "lookup": "__import__('socket').getaddrinfo('localhost', 80)",
    "process": "__import__('subprocess').run(['true'], check=True)",
    "listing": "__import__('os').listdir('.')",
    "repository": "__import__('pygit2').Repository('.')",
    "object": "__import__('pygit2').Odb().read('0' * 40)",
}


@pytest.mark.parametrize("call", BLOCKING_CALLS.values(), ids=BLOCKING_CALLS.keys())
async def test_a_blocking_call_of_the_product_on_the_event_loop_raises(call: str) -> None:
    with pytest.raises(BlockingError):
        product_code(call)()


@pytest.mark.parametrize("call", ["read", "database"])
async def test_the_same_call_in_a_thread_is_welcome(call: str) -> None:
    await asyncio.to_thread(product_code(BLOCKING_CALLS[call]))


async def test_the_same_call_is_welcome_on_a_loop_that_a_thread_runs_for_itself() -> None:
    async def read() -> object:
        return product_code(BLOCKING_CALLS["read"])()

    await asyncio.to_thread(lambda: asyncio.run(read()))


def test_the_same_call_without_an_event_loop_is_welcome() -> None:
    product_code(BLOCKING_CALLS["read"])()


@pytest.mark.parametrize("call", ["read", "database"])
async def test_the_store_of_the_local_plane_may_block(call: str) -> None:
    product_code(BLOCKING_CALLS[call], module="kardinal_local/plane/storage/database.py")()


async def test_no_other_module_of_the_local_plane_may_block() -> None:
    with pytest.raises(BlockingError):
        product_code(BLOCKING_CALLS["database"], module="kardinal_local/plane/server.py")()


async def test_functions_of_the_git_runner_raise_where_an_event_loop_runs(repository: GitRepository) -> None:
    runner = GitRunner(workers=1)
    backend = LocalBackend(RepositoryURL.parse(repository.url, allow_local=True), str(repository.path), runner=runner)
    with pytest.raises(BlockingCallOnLoop, match="run it on a thread"):
        backend.open()
    (await runner.run(backend.open)).free()
    runner.close()


def product_code(expression: str, *, module: str = "kardinal/imaginary.py") -> Callable[[], object]:
    """Return a function whose frame says that it stands in a module of the product."""
    path = Path(kardinal.__file__).parents[1] / module
    namespace: dict[str, Callable[[], object]] = {"__file__": __file__}  # type: ignore[dict-item]
    exec(compile(f"def call():\n    return {expression}", str(path), "exec"), namespace)  # noqa: S102
    return namespace["call"]
