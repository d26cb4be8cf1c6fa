"""Write the files of a commit to disk, for programs that read files.

A commit is written once for all environments that are rendered from it at the same time, and only the files that they
read: an environment reads a handful of files of a repository that may have thousands. The files are deleted after the
last rendering. Files of a killed process are deleted by `Exports.sweep` at the next start, which is safe because the
directory belongs to one process at a time.
"""

from __future__ import annotations

import itertools
import os
import posixpath
import shutil
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from kardinal.git import GitRunner, Repository, TreeView
from kardinal_local.simulator.inputs import Inputs
from kardinal_local.simulator.kustomization import RenderError

__all__ = ["Export", "Exports"]

LIMIT = 64 * 1024 * 1024
"""The maximum number of bytes that are written for one commit."""


class Export:
    """The files of one commit that have been written so far.

    `root` is the directory of the files, `scratch` a directory for temporary files of the program; both are in `home`.
    """

    def __init__(self, directory: Path, repository: Repository, commit: str) -> None:
        self.home = directory
        self.root = directory / "files"
        self.scratch = directory / "scratch"
        self.users = 0
        self._outputs = itertools.count(1)
        self._repository = repository
        self._commit = commit
        # A lock of threads and not of tasks, because the thread of a cancelled task goes on writing.
        self._lock = threading.Lock()
        self._written: set[str] = set()
        self._links: list[Path] = []
        self._size = 0
        self._removed = False

    async def fill(self, inputs: Inputs | None) -> None:
        """Write the inputs of a rendering, or the whole commit if `inputs` is None.

        Raises `RenderError` beyond `LIMIT`.
        """
        paths = [""] if inputs is None else [path for path, known in inputs.items() if known is not None]
        await self._repository.inspect(self._commit, lambda tree: self._write(tree, paths))

    def remove(self) -> None:
        """Delete all files; later calls of `fill` write nothing. Blocks."""
        with self._lock:
            self._removed = True
            shutil.rmtree(self.home, ignore_errors=True)

    def new_output(self) -> Path:
        """Return a new path for the output of a program."""
        return self.home / f"output-{next(self._outputs)}"

    def _write(self, tree: TreeView, paths: Iterable[str]) -> None:
        with self._lock:
            if self._removed:
                return
            self.root.mkdir(parents=True, exist_ok=True)
            self.scratch.mkdir(exist_ok=True)
            for path in paths:
                self._write_below(tree, path)
            self._cut_links()

    def _write_below(self, tree: TreeView, path: str) -> None:
        if not tree.is_dir(path):
            self._write_file(path, tree.read(path) or b"")
        for file in tree.walk(path):
            if file.link is None:
                self._write_file(file.path, tree.read(file.path) or b"")
            elif file.path not in self._written and _stays_inside(file.path, file.link):
                self._written.add(file.path)
                place = self._place(file.path)
                place.symlink_to(file.link)
                self._links.append(place)

    def _cut_links(self) -> None:
        """Delete symbolic links that lead out of `root` through other links."""
        root = self.root.resolve()
        for link in self._links:
            try:
                inside = link.resolve().is_relative_to(root)
            except (OSError, RuntimeError):  # The links form a loop.
                inside = False
            if not inside:
                link.unlink(missing_ok=True)

    def _write_file(self, path: str, content: bytes) -> None:
        if path in self._written:
            return
        self._written.add(path)
        self._size += len(content)
        if self._size > LIMIT:
            raise RenderError(f"what is to be rendered is larger than {LIMIT} bytes")
        self._place(path).write_bytes(content)

    def _place(self, path: str) -> Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        return place


class Exports:
    """The exports that are in use, in a directory that belongs to this process."""

    def __init__(self, directory: Path, *, runner: GitRunner) -> None:
        self._directory = directory
        self._runner = runner
        self._open: dict[tuple[str, str], Export] = {}
        self._numbers = itertools.count(1)

    async def sweep(self) -> None:
        """Delete the files of an earlier process."""
        await self._runner.run(shutil.rmtree, self._directory, ignore_errors=True)

    @asynccontextmanager
    async def open(self, repository: Repository, commit: str) -> AsyncIterator[Export]:
        """Yield the export of a commit, which is shared with concurrent callers and deleted after the last of them.

        Files are written by `Export.fill`.
        """
        key = (repository.url, commit)
        export = self._open.get(key)
        if export is None:
            # The number is new, because the directory of an earlier export may still be in deletion.
            export = self._open[key] = Export(self._directory / str(next(self._numbers)), repository, commit)
        export.users += 1
        try:
            yield export
        finally:
            export.users -= 1
            if not export.users:
                del self._open[key]
                await self._runner.run(export.remove)


def _stays_inside(path: str, link: str) -> bool:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    return not os.path.isabs(link) and target.split("/")[0] != ".."
