"""Build the program that evaluates JSONPaths with client-go.

    python -m hack.carto_oracle.assets [--can | --built]

`go.mod` beside this file pins the version of client-go. A build takes a minute, and is cached as in `hack.kube.assets`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

from hack.kube.assets import Module, command, obtain

__all__ = ["CARTO_ORACLE", "answers"]

CARTO_ORACLE = Module(name="carto_oracle", binaries={"carto_oracle": "carto_oracle"}, package=".")


def answers(questions: Iterable[tuple[object, str]]) -> list[dict[str, Any]]:
    """Return what client-go says to pairs of an object and a path; raises AssetsMissing.

    An answer is `{"results": [...]}` or `{"results": null, "error": "..."}`.
    """
    lines = "\n".join(json.dumps({"object": value, "path": path}) for value, path in questions)
    program = obtain(CARTO_ORACLE) / "carto_oracle"
    printed = subprocess.run([program], input=lines.encode(), capture_output=True, check=True, timeout=60)
    return [json.loads(line) for line in printed.stdout.splitlines()]


def main() -> int:
    return command(CARTO_ORACLE, program="hack.carto_oracle.assets")


if __name__ == "__main__":
    sys.exit(main())
