"""Install Commodore beside the project, and build jsonnet-bundler, which Commodore runs.

    python -m hack.catalog_oracle.assets

`requirements.in` pins the version of Commodore, and `requirements.txt` locks it with everything it needs. It gets a
virtual environment of its own, because its pins fight those of any other program. The environment lies in
`${XDG_CACHE_HOME:-~/.cache}/kardinal` under a name made of the lock and of the Python that runs it. `go.mod` pins
jsonnet-bundler; helm and kustomize are those of `hack.renderers.assets`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

from hack.kube.assets import HACK, AssetsMissing, Module, obtain, reported
from hack.renderers.assets import RENDERERS

__all__ = ["Commodore", "find", "install"]

_LOCK = HACK / "catalog_oracle" / "requirements.txt"
_BUNDLER = Module(name="catalog_oracle", binaries={"jb": "jb"})
_PYTHON = range(11, 15)
"""Minor versions of Python 3 that Commodore runs on."""


@dataclass(frozen=True, slots=True)
class Commodore:
    """Commodore's Python, and the directories of the programs that it runs."""

    python: Path
    programs: tuple[Path, ...]


def find() -> Commodore | None:
    """Return Commodore if it is installed and its programs are built."""
    return install() if _directory().is_dir() else None


def install() -> Commodore:
    """Return Commodore, and install it if needed, which takes a minute; raises AssetsMissing."""
    directory = _directory()
    if not directory.is_dir():
        _install(directory)
    return Commodore(directory / "bin" / "python", (obtain(_BUNDLER), obtain(RENDERERS)))


def _directory() -> Path:
    digest = hashlib.sha256(_LOCK.read_bytes())
    digest.update(f"{sys.base_prefix} {platform.python_version()} {platform.machine()}".encode())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kardinal"
    return cache / f"commodore-{digest.hexdigest()[:16]}"


def _install(directory: Path) -> None:
    if sys.version_info.minor not in _PYTHON:
        raise AssetsMissing(f"Commodore runs on Python 3.11 to 3.14, and this is {platform.python_version()}")
    directory.parent.mkdir(parents=True, exist_ok=True)
    with directory.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if directory.is_dir():
            return
        print(f"installing Commodore into {directory}, which takes a minute the first time", file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=directory.parent, prefix=f"{directory.name}.") as scratch:
            made = Path(scratch) / "made"
            venv.create(made, with_pip=True)
            # Scripts in bin name the directory that they were made in: Commodore is run as a module of its Python.
            pip = [str(made / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
            done = subprocess.run([*pip, "--require-hashes", "--requirement", str(_LOCK)], check=False)
            if done.returncode != 0:
                raise AssetsMissing(f"pip does not install what {_LOCK} locks, see above; it needs PyPI")
            shutil.move(made, directory)


def main() -> int:
    """Install Commodore, and print where its Python is."""
    return reported(lambda: install().python)


if __name__ == "__main__":
    sys.exit(main())
