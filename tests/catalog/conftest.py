from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalog.compilations import Compilation

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
