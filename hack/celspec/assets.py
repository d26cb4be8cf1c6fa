"""Build the converter of CEL's conformance tests, and keep it with the tests, which are text of protocol buffers.

    python -m hack.celspec.assets [--can | --built]

`go.mod` beside this file pins the version of the tests. A build takes a minute, and is cached as in `hack.kube.assets`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from hack.kube.assets import Module, command, obtain

__all__ = ["CELSPEC", "conformance_files"]

_TESTS = "testdata"

CELSPEC = Module(
    name="celspec",
    binaries={"celspec": "celspec"},
    package=".",
    files={_TESTS: "tests/simple/testdata"},
    source="cel.dev/expr",
)


def conformance_files() -> list[dict[str, Any]]:
    """Return the files of tests as JSON of cel.expr.conformance.test.SimpleTestFile; raises AssetsMissing."""
    directory = obtain(CELSPEC)
    files = sorted((directory / _TESTS).glob("*.textproto"))
    printed = subprocess.run([directory / "celspec", *files], capture_output=True, check=True, timeout=60)
    converted: list[dict[str, Any]] = json.loads(printed.stdout)
    return converted


def main() -> int:
    return command(CELSPEC, program="hack.celspec.assets")


if __name__ == "__main__":
    sys.exit(main())
