"""Durability shown by order: what the system is asked to do, and when.

A crash that loses what the disk had not taken cannot be made in a test. What can be seen is the order of system calls:
a write to the log that is not yet flushed when bytes go out to the client is one that a power failure could take back.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.plane.baddays.processes import found, nursery
from tests.local.plane.wire import CONFIG_MAPS, Http, config_map, session_for

WRITES = 20
LOG = "plane.db-wal>"


async def test_durable_writes_are_flushed_before_they_are_answered(tmp_path: Path) -> None:
    events = await _events(tmp_path, durable=True)
    assert events.count("flushed") >= WRITES
    assert events.count("answered") >= WRITES
    assert _hasty(events) == 0


async def test_without_durable_the_same_look_finds_answers_that_came_first(tmp_path: Path) -> None:
    events = await _events(tmp_path, durable=False)
    assert events.count("wrote") >= WRITES
    assert _hasty(events) >= WRITES


def _hasty(events: list[str]) -> int:
    """How often bytes were sent while something in the log was not flushed."""
    pending, hasty = False, 0
    for event in events:
        if event == "answered":
            hasty += pending
        else:
            pending = event == "wrote"
    return hasty


async def _events(directory: Path, *, durable: bool) -> list[str]:
    """What a plane did when it was asked for one write after the other."""
    if not (strace := found("strace")):
        pytest.skip("strace is not installed: the order of flush and answer was not looked at")
    trace = directory / "trace"
    calls = "trace=pwrite64,fdatasync,fsync,sendto,sendmsg,write,writev"
    inside = (strace, "-f", "-yy", "-qq", "--seccomp-bpf", "-s", "1", "-e", calls, "-o", str(trace))
    async with (
        nursery(inside) as planes,
        planes.plane(directory / "plane", durable=durable) as plane,
        session_for(plane.kubeconfig) as session,
    ):
        for number in range(WRITES):
            assert (await Http(session).post(CONFIG_MAPS, config_map(f"m{number}"))).status == 201
    return list(_read(trace))


def _read(trace: Path) -> Iterator[str]:
    """A write and a send count from their beginning, a flush from its end."""
    flushing: set[str] = set()
    for line in trace.read_text(errors="replace").splitlines():
        task, _, call = line.partition(" ")
        call = call.lstrip()
        if call.startswith("pwrite64(") and LOG in call:
            yield "wrote"
        elif call.startswith(("sendto(", "sendmsg(", "write(", "writev(")) and "<TCP" in call:
            yield "answered"
        elif call.startswith(("fdatasync(", "fsync(")) and LOG in call:
            if "unfinished" in call:
                flushing.add(task)
            else:
                yield "flushed"
        elif call.startswith("<... f") and task in flushing:
            flushing.discard(task)
            yield "flushed"
