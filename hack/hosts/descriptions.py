"""Fetch the published API descriptions that the fake hosts are checked against.

    python -m hack.hosts.descriptions

`descriptions.json` lists npm packages with version and hash, like a lock file of npm. `npm pack` fetches them, the hash
is compared before any file is read, and only the listed files are kept, in `${XDG_CACHE_HOME:-~/.cache}/kardinal` under
a name with the hash of the list. No code of a package is run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

__all__ = ["COMMAND", "DescriptionsMissing", "fetch", "locate"]

COMMAND = "python -m hack.hosts.descriptions"

_LOCK = Path(__file__).with_name("descriptions.json")
_FETCH_TIMEOUT = 300.0


class DescriptionsMissing(Exception):
    """The descriptions are not fetched yet and cannot be fetched; the message has the remedy."""


@dataclass(frozen=True, slots=True)
class _Package:
    """A package of the npm registry: the hash of its archive, and the members that are kept, by their new name."""

    package: str
    version: str
    integrity: str
    files: dict[str, str]


def locate() -> Path | None:
    """Return the directory of the descriptions; None if they are not fetched yet."""
    directory = _directory()
    return directory if directory.is_dir() else None


def fetch() -> Path:
    """Return the directory of the descriptions, and fetch them if needed. Raises `DescriptionsMissing`."""
    found = locate()
    if found is not None:
        return found
    npm = shutil.which("npm")
    if npm is None:
        raise DescriptionsMissing("npm is not on PATH, and it fetches the descriptions of the hosts' APIs")
    directory = _directory()
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent) as work:
        kept = Path(work) / "kept"
        kept.mkdir()
        for package in _packages():
            _unpack(_archive(npm, package, Path(work)), package, kept)
        # Another process may have fetched the same files in the meantime.
        if not directory.is_dir():
            kept.rename(directory)
    return directory


def _packages() -> list[_Package]:
    return [_Package(**entry) for entry in json.loads(_LOCK.read_text())]


def _directory() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "kardinal" / f"hosts-{hashlib.sha256(_LOCK.read_bytes()).hexdigest()[:16]}"


def _archive(npm: str, package: _Package, work: Path) -> Path:
    """Fetch the archive of a package and compare its hash."""
    wanted = f"{package.package}@{package.version}"
    done = subprocess.run(
        [npm, "pack", "--silent", "--ignore-scripts", "--pack-destination", str(work), wanted],
        capture_output=True,
        text=True,
        timeout=_FETCH_TIMEOUT,
        check=False,
    )
    if done.returncode != 0:
        raise DescriptionsMissing(f"npm does not get {wanted}: {done.stderr.strip()[-500:]}")
    archive = work / done.stdout.split()[-1]
    algorithm, _, expected = package.integrity.partition("-")
    found = base64.b64encode(hashlib.new(algorithm, archive.read_bytes()).digest()).decode()
    if found != expected:
        raise DescriptionsMissing(f"{wanted} is not what {_LOCK.name} locks: its {algorithm} is {found}")
    return archive


def _unpack(archive: Path, package: _Package, kept: Path) -> None:
    with tarfile.open(archive) as members:
        for name, member in package.files.items():
            content = members.extractfile(member)
            if content is None:
                raise DescriptionsMissing(f"{package.package}@{package.version} has no file {member}")
            with (kept / name).open("wb") as file:
                shutil.copyfileobj(content, file)


def main() -> int:
    """Fetch the descriptions, and print their directory."""
    try:
        print(fetch())
    except DescriptionsMissing as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
