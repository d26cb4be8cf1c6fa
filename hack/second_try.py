"""Run a command that runs pytest, and give at most three tests that failed in it a second try.

    python -m hack.second_try [--option=--target=assets]... -- make test-kube-fast

A machine that stands still for a minute fails the tests that run in that minute, whatever they test. So the failed
tests run once more, one after another and with the given options of pytest. When all of them pass, the command counts
as passed. The names of such tests are printed, and added to `build/second-tries`, which `.ci/run` prints at its end: a
name that returns is a test to mend. More than three failures are no accident, and get no second try.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["MOST", "RECORD", "run"]

MOST = 3
"""The most failed tests that get a second try."""

RECORD = Path("build", "second-tries")
"""The names of the tests that passed in their second try, a line each, relative to the current directory."""

_FAILED = Path(".pytest_cache", "v", "cache", "lastfailed")


def run(command: Sequence[str], options: Sequence[str]) -> int:
    """Run `command`, then its few failed tests again with these options of pytest; return the exit code."""
    _FAILED.unlink(missing_ok=True)
    code = subprocess.run(command, check=False).returncode
    if code == 0:
        return 0
    failed = sorted(json.loads(_FAILED.read_text(encoding="utf-8"))) if _FAILED.exists() else []
    if not 1 <= len(failed) <= MOST:
        return code
    print(f"SECOND TRY of {len(failed)} failed tests, one after another", flush=True)
    again = subprocess.run([sys.executable, "-m", "pytest", "-n0", *options, *failed], check=False).returncode
    if again != 0:
        return code
    RECORD.parent.mkdir(exist_ok=True)
    with RECORD.open("a", encoding="utf-8") as record:
        record.writelines(f"{name}\n" for name in failed)
    print("PASSED IN THE SECOND TRY:", *failed, sep="\n  ", flush=True)
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m hack.second_try", description=__doc__.splitlines()[0])
    parser.add_argument("--option", action="append", default=[], help="an option of pytest for the second try")
    parser.add_argument("command", nargs="+", help="the command that runs pytest")
    arguments = parser.parse_args()
    sys.exit(run(arguments.command, arguments.option))


if __name__ == "__main__":
    main()
