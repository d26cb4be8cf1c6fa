"""Write files and directories that only their owner may read: keys, tokens, kubeconfigs. Call it in a thread."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["private_directory", "write_private"]


def private_directory(path: Path) -> None:
    """Make `path` a directory of its owner alone."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.chmod(0o700)


def write_private(path: Path, content: bytes) -> None:
    """Make `content` what is in `path`, as a whole; it is never readable by others, not even for a moment."""
    if path.exists() and path.read_bytes() == content:
        return
    # There is no other writer: the directory is its owner's, and served by one process.
    temporary = path.with_name(f".{path.name}.new")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
