"""A worker of which templates have taken hold reaches no network, no file of the host and no memory of others."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from kardinal.catalog.errors import CatalogError
from kardinal.catalog.values import Layout
from kardinal.processes.isolation import find_walls
from tests.catalog.conftest import StartEngine
from tests.catalog.hostile_worker import hostile_worker

NOTHING = Layout({}, {})


@pytest.fixture(autouse=True)
def walls() -> None:
    if missing := find_walls().missing:
        pytest.skip(missing)


async def told(start: StartEngine, tmp_path: Path, program: str, **options: Any) -> Any:
    """Return the value that a hostile worker answers with; `tmp_path/trees` is what it may read."""
    (tmp_path / "trees").mkdir()
    engine = start(tmp_path / "trees", program=hostile_worker(program), **options)
    return await engine.evaluate(NOTHING, "x.jsonnet", {})


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_PACKET"])
async def test_a_worker_opens_no_socket(start_engine: StartEngine, tmp_path: Path, family: str) -> None:
    program = f"""
    import socket
    request()
    answer({{"value": tried(lambda: socket.socket(socket.{family}, socket.SOCK_DGRAM))}})
    """
    assert await told(start_engine, tmp_path, program) == "PermissionError"


async def test_a_worker_reads_no_file_of_the_host(start_engine: StartEngine, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a password")
    program = f"""
    request()
    os.symlink({str(secret)!r}, "link")
    paths = [{str(secret)!r}, "link", "/etc/passwd", "/etc/hostname", "/proc/self/environ", "/proc/1/environ",
             "/proc/{os.getpid()}/environ", os.path.expanduser("~/.ssh"), "/root", "/var/run/secrets", "/tmp", "/"]
    def read(path):
        return os.listdir(path) if os.path.isdir(path) else open(path).read()
    answer({{"value": [tried(lambda: read(path)) for path in paths]}})
    """
    for said in await told(start_engine, tmp_path, program):
        assert said in ("PermissionError", "FileNotFoundError")


async def test_a_worker_writes_to_its_own_directory_alone(start_engine: StartEngine, tmp_path: Path) -> None:
    program = f"""
    request()
    paths = ["own", {str(tmp_path / "trees/file")!r}, {str(tmp_path / "file")!r}, "/tmp/kardinal-escaped"]
    answer({{"value": [tried(lambda: open(path, "w").write("x")) for path in paths]}})
    """
    assert await told(start_engine, tmp_path, program) == ["1", *["PermissionError"] * 3]


async def test_a_worker_reads_no_trees_of_other_namespaces(start_engine: StartEngine, tmp_path: Path) -> None:
    (tmp_path / "others").mkdir()
    (tmp_path / "others/file").write_text("theirs")
    program = f"""
    request()
    answer({{"value": tried(lambda: open({str(tmp_path / "others/file")!r}).read())}})
    """
    assert await told(start_engine, tmp_path, program) == "PermissionError"


async def test_a_worker_has_no_environment_of_this_process(
    start_engine: StartEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TOKEN", "a password")
    program = """
    request()
    answer({"value": sorted(os.environ)})
    """
    assert await told(start_engine, tmp_path, program) == ["GOMEMLIMIT", "GOTRACEBACK", "LC_ALL", "PATH", "TMPDIR"]


async def test_a_worker_has_no_open_file_of_this_process(start_engine: StartEngine, tmp_path: Path) -> None:
    program = """
    request()
    def is_open(number):
        try:
            return bool(os.fstat(number))
        except OSError:
            return False
    answer({"value": [number for number in range(4096) if is_open(number)]})
    """
    inherited = os.open("/etc/hostname", os.O_RDONLY)
    os.set_inheritable(inherited, True)
    try:
        assert await told(start_engine, tmp_path, program) == [0, 1, 2]
    finally:
        os.close(inherited)


async def test_a_worker_cannot_kill_this_process(start_engine: StartEngine, tmp_path: Path) -> None:
    program = f"""
    request()
    answer({{"value": tried(lambda: os.kill({os.getpid()}, {signal.SIGTERM.value}))}})
    """
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        said = await told(start_engine, tmp_path, program)
    finally:
        signal.signal(signal.SIGTERM, before)
    # Landlock denies signals from Linux 6.12 on; before, the user of the container is all that does.
    assert said in ("PermissionError", "None")


async def test_children_of_a_worker_are_killed_with_it(start_engine: StartEngine, tmp_path: Path) -> None:
    program = """
    import time
    request()
    if (child := os.fork()) == 0:
        time.sleep(600)
    answer({"value": child})
    request()
    os._exit(1)
    """
    engine = start_engine(program=hostile_worker(program))
    child = await engine.evaluate(NOTHING, "x.jsonnet", {})
    with pytest.raises(CatalogError):
        await engine.evaluate(NOTHING, "x.jsonnet", {})
    async with asyncio.timeout(30):
        while Path(f"/proc/{child}/exe").exists():
            await asyncio.sleep(0.01)


async def test_more_memory_than_its_share_is_a_limit(start_engine: StartEngine, tmp_path: Path) -> None:
    program = """
    request()
    kept = []
    while True:
        kept.append(os.urandom(1 << 20))
    """
    with pytest.raises(CatalogError, match="memory") as failed:
        await told(start_engine, tmp_path, program, memory=800 << 20)
    assert failed.value.kind == "limit"


async def test_more_cpu_than_allowed_is_a_limit(start_engine: StartEngine, tmp_path: Path) -> None:
    program = """
    import resource
    request()
    resource.setrlimit(resource.RLIMIT_CPU, (1, 60))
    while True:
        pass
    """
    with pytest.raises(CatalogError, match="s of CPU") as failed:
        await told(start_engine, tmp_path, program)
    assert failed.value.kind == "limit"


TEMPLATES = {
    "recursion": "local f(n) = 1 + f(n + 1); f(0)",
    "text": "std.length(std.repeat('x', 1 << 30) + 'y')",
    "list": "std.length(std.foldl(function(list, n) list + list, std.range(1, 40), [1]))",
    "doubled": "local d(s, n) = if n == 0 then s else d(s + s, n - 1); std.length(d('x', 40))",
}


@pytest.mark.parametrize("name", sorted(TEMPLATES))
async def test_a_file_that_needs_too_much_is_an_error(start_engine: StartEngine, name: str) -> None:
    engine = start_engine(memory=1 << 30)
    with pytest.raises(CatalogError) as failed:
        await engine.evaluate(Layout({}, {"x.jsonnet": TEMPLATES[name].encode()}), "x.jsonnet", {})
    assert failed.value.kind == "limit"
    assert await engine.evaluate(Layout({}, {"x.jsonnet": b"1"}), "x.jsonnet", {}) == 1


@pytest.mark.parametrize("signal_name", ["SIGSEGV", "SIGABRT", "SIGKILL", "SIGBUS"])
async def test_a_crash_is_a_limit(start_engine: StartEngine, tmp_path: Path, signal_name: str) -> None:
    program = f"""
    import signal
    request()
    os.kill(os.getpid(), signal.{signal_name})
    """
    with pytest.raises(CatalogError) as failed:
        await told(start_engine, tmp_path, program)
    assert failed.value.kind == "limit"
    assert failed.value.where.file == "x.jsonnet"
