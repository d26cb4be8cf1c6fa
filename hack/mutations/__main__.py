"""Delete behaviours of the local plane one at a time, and check that the tests fail without a real server.

    python -m hack.mutations [NAME...]

A passing suite proves little unless it is known to fail without the behaviour. `mutations.toml` lists edits; each edit
removes one behaviour, and names the test file that must notice. Each edit is made in a copy of the committed tree,
where the test file must fail on the local plane. If it passes, the behaviour is not tested. NAME limits the run to some
edits. Exits with 0 if the tests noticed all edits.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TIME_LIMIT = 300


@dataclass(frozen=True, slots=True)
class Mutation:
    """One behaviour, and the edit that removes it."""

    name: str
    behaviour: str
    noticed_by: str
    file: str
    find: str
    replace: str

    def apply(self, root: Path) -> None:
        """Make the edit in a tree. Its old text must occur exactly once."""
        path = root / self.file
        text = path.read_text()
        if text.count(self.find) != 1:
            raise SystemExit(f"{self.name}: {self.file} holds the text to replace {text.count(self.find)} times")
        path.write_text(text.replace(self.find, self.replace))


def load() -> list[Mutation]:
    """Return the mutations in `mutations.toml`."""
    document = tomllib.loads(Path(__file__).with_name("mutations.toml").read_text())
    return [Mutation(**entry) for entry in document["mutation"]]


def main(names: Sequence[str]) -> int:
    mutations = [one for one in load() if not names or one.name in names]
    unnoticed = [one for one in mutations if not _noticed(one)]
    print(f"{len(mutations) - len(unnoticed)} of {len(mutations)} deleted behaviours were noticed")
    for one in unnoticed:
        print(f"not noticed: {one.name}: {one.behaviour}")
    return 1 if unnoticed else 0


def _noticed(mutation: Mutation) -> bool:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kardinal-mutation-") as directory:
        copy = Path(directory) / "kardinal"
        subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(copy)], check=True)
        mutation.apply(copy)
        command = [sys.executable, "-m", "pytest", "--exitfirst", "--quiet", "--no-header", "-n0", mutation.noticed_by]
        noticed, verdict = _tested(command, copy)
    print(f"{time.monotonic() - began:4.0f} s  {mutation.name}: {verdict}", flush=True)
    return noticed


def _tested(command: Sequence[str], directory: Path) -> tuple[bool, str]:
    """Return whether the tests failed, and the text of the result."""
    try:
        done = subprocess.run(command, cwd=directory, check=False, capture_output=True, text=True, timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired:
        return True, f"no end within {TIME_LIMIT} s"
    failed = next((line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))), "")
    # Exit code 1 of pytest means that tests failed. Codes above 1 mean that they could not run, which proves nothing.
    verdict = {0: "NOT NOTICED", 1: failed}.get(done.returncode, f"pytest ended with {done.returncode}")
    return done.returncode == 1, verdict


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
