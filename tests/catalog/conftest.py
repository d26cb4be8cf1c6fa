"""Compilations in this process, and workers that merge and render in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kardinal.catalog.engine import CatalogWorkers, WorkerEngine
from tests.catalog.compilations import Compilation

StartEngine = Callable[..., WorkerEngine]

_POLLER = "anon_inode:[eventpoll]"


@pytest.fixture(scope="session", autouse=True)
def go_runtime() -> None:
    """Let Go's runtime open the descriptors that it keeps; it does so after some garbage, in any test."""
    import _gojsonnet  # noqa: PLC0415 - only here, so that other tests run in a process without it

    garbage = "std.length(std.foldl(function(list, n) list + [n], std.range(1, 300), []))"
    for _ in range(1_000):
        _gojsonnet.evaluate_snippet("garbage", garbage)
        if any(path.is_symlink() and str(path.readlink()) == _POLLER for path in Path("/proc/self/fd").iterdir()):
            return


@pytest.fixture
def compilation(tmp_path: Path) -> Compilation:
    return Compilation(tmp_path)


@pytest.fixture
def start_engine(tmp_path: Path) -> Iterator[StartEngine]:
    """Return the engine of workers that read `tmp_path`, or `trees`; all workers are killed after the test."""
    with ExitStack() as stack:

        def start(*trees: Path, **options: Any) -> WorkerEngine:
            workers = CatalogWorkers(**{"jobs": 1, **options})
            stack.callback(workers.close)
            return WorkerEngine(workers, *(trees or (tmp_path,)))

        yield start
