"""`kardinal local up` with a thousand connections of clients that say little or nothing."""

from __future__ import annotations

import asyncio
import resource
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.plane.wire import CONFIG_MAPS, Http, config_map, session_for
from tests.resilience.processes import Local, Process, Shell, shell

__all__ = ["shell"]

CONNECTIONS = 1_000
MEMORY_LIMIT = 200 * 1024 * 1024


@pytest.fixture
def many_files() -> Iterator[None]:
    """Both ends of every connection are files of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * CONNECTIONS
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"a process may open {hard} files here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_thousand_idle_and_slow_connections_keep_no_client_waiting(
    shell: Shell, tmp_path: Path, many_files: None
) -> None:
    """In a process of its own: what a connection takes depends on the event loop, which is another one in tests."""
    local = Local(shell, tmp_path / "local", "--only", "plane")
    await local.up()
    port = int((local.directory / "port").read_text())
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    before = resident(local.process)
    opened: list[asyncio.StreamWriter] = []
    try:
        for number in range(CONNECTIONS):
            secure = context if number % 10 == 0 else None
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=secure)
            opened.append(writer)
            if secure is not None:
                # The beginning of a request, whose rest does not come.
                writer.write(b"POST /api/v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Le")
                await writer.drain()
        async with session_for(local.kubeconfig) as session:
            created = await Http(session).post(CONFIG_MAPS, config_map("meanwhile"))
        assert created.status == 201
        assert resident(local.process) - before < MEMORY_LIMIT
    finally:
        for writer in opened:
            writer.transport.abort()
        await asyncio.gather(*(writer.wait_closed() for writer in opened), return_exceptions=True)


def resident(process: Process) -> int:
    """Return the memory of a process in bytes."""
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * 4096
