"""Run the suites of the local plane, and record that they passed with what they depend on.

    python -m hack.plane_suites              run them; when all pass, write the record
    python -m hack.plane_suites --passed     end with 0 if the record says that they passed with what is here now

The local plane is frozen: as long as nothing of `INPUTS` changes, its suites say what they said before, so `.ci/run`
runs them when the record does not hold, and leaves them out when it does. The record has a hash of `INPUTS` for each
minor version of Python, with the day on which the suites passed on it. Commit it after a change of an input.

A run of a part of the suites, as `pytest tests/local/plane`, writes nothing. The trap: a suite that comes to depend on
a file outside `INPUTS` would not be run when that file changes. `tests/house/test_plane_suites.py` follows the imports.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["INPUTS", "RECORD", "SUITES", "hash_of_inputs", "passed", "run"]

ROOT = Path(__file__).parents[1]

SUITES = ("tests/local/plane", "tests/local/contract")
"""The directories of the suites, relative to the root as all paths of this module."""

INPUTS = (
    *SUITES,
    # What is tested.
    "kardinal_local/plane",
    "kardinal/cel",
    "kardinal/objects",
    "kardinal/clock.py",
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-build.txt",
    # What the tests use.
    "tests/conftest.py",
    *(
        f"tests/support/{name}.py"
        for name in (
            "blocking",
            "clock",
            "exchange",
            "identities",
            "kubectl",
            "leaks",
            "names",
            "objects",
            "plane",
            "repository",
            "secret_values",
            "store",
            "target",
        )
    ),
    "hack/kube",
    "hack/goclient",
    # The pages that the tests compare with the recordings and the ledger.
    "hack/docs/contract.py",
    "hack/docs/limits.py",
    "docs/contract.md",
    "docs/local-plane-limits.md",
    # How they are run.
    "hack/plane_suites.py",
)
"""Every file, and every directory with all its files, that an answer of the suites depends on."""

RECORD = "tests/local/plane_suites.json"

_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
_NO_INPUT = frozenset({"__pycache__", ".hypothesis"})
_COMMAND = (sys.executable, "-m", "pytest", *SUITES)


def hash_of_inputs(root: Path) -> str:
    """Return the SHA-256 of the names and contents of all inputs below `root`."""
    total = hashlib.sha256()
    for path in sorted(_files(root)):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(root).as_posix()} {content}\n".encode())
    return total.hexdigest()


def passed(root: Path) -> bool:
    """Return whether the suites have passed on this version of Python with the inputs as they are."""
    return _record(root).get(_PYTHON, {}).get("sha256") == hash_of_inputs(root)


def run(root: Path, command: Sequence[str] = _COMMAND) -> int:
    """Run the suites, and write the record if all of them passed; return the exit code of pytest."""
    before = hash_of_inputs(root)
    # Options from outside could leave tests out.
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    code = subprocess.run(command, cwd=root, env=environment, check=False).returncode
    if code == 0 and before == hash_of_inputs(root):
        entry = {"sha256": before, "passed": datetime.now(UTC).date().isoformat()}
        text = json.dumps(_record(root) | {_PYTHON: entry}, indent=2, sort_keys=True)
        (root / RECORD).write_text(f"{text}\n")
    return code


def _files(root: Path) -> Iterator[Path]:
    for name in INPUTS:
        path = root / name
        if not path.exists():
            raise SystemExit(f"hack/plane_suites.py: {name} is an input of the suites, and there is no such file")
        for found in path.rglob("*") if path.is_dir() else [path]:
            if found.is_file() and _NO_INPUT.isdisjoint(found.parts):
                yield found


def _record(root: Path) -> dict[str, dict[str, str]]:
    path = root / RECORD
    found: dict[str, dict[str, str]] = json.loads(path.read_text()) if path.is_file() else {}
    return found


def main(arguments: Sequence[str]) -> int:
    if list(arguments) == ["--passed"]:
        return 0 if passed(ROOT) else 1
    if arguments:
        print("usage: python -m hack.plane_suites [--passed]", file=sys.stderr)
        return 2
    return run(ROOT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
