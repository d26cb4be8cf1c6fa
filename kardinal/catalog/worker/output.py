"""The files of one instance while they are rendered: bounded, and inside of the instance's directory.

Each file is visible to later inputs and filters as `compiled/<instance>/<path>`. An input whose `output_path` is
`${_base_directory}` or below writes a private file instead, which only later inputs of this instance see.
"""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Mapping

from kardinal.catalog.errors import CatalogError
from kardinal.catalog.values import InstanceFiles
from kardinal.catalog.worker.files import FILE_LIMIT, Files
from kardinal.objects.text import cut

__all__ = ["Output"]

_FILES = 5_000
_BYTES = 64 << 20
_NAME_LIMIT = 255


class Output:
    """Collects the files. `base`: the directory that `${_base_directory}` stands for, relative; empty if none."""

    def __init__(self, files: Files, instance: str, base: str) -> None:
        self.directory = f"compiled/{instance.replace('.', '/')}"
        """The place of the instance's files, as templates see it."""
        self._files = files
        self._instance = instance
        self._base = posixpath.normpath(base) if base else ""
        self._contents: dict[str, bytes] = {}
        self._executable: set[str] = set()
        self._written = 0
        self._count = 0

    def place(self, output_path: str) -> str:
        """Return the directory that an `output_path` stands for. Raises `CatalogError` if it is another's."""
        path = posixpath.normpath(output_path)
        if self._base and (path == self._base or path.startswith(f"{self._base}/")):
            return path
        return self.below(output_path)

    def below(self, path: str) -> str:
        """Return the directory at a path of the instance's files. Raises `CatalogError` if it leads out of them."""
        return _joined(self.directory, path, f"the output path {cut(path, 200)!r}")

    def write(self, directory: str, name: str, content: bytes, *, executable: bool = False) -> None:
        """Write a file below a directory that `place` has returned. Raises `CatalogError`."""
        path = _joined(directory, name, f"the output file {cut(name, 200)!r}")
        self._count += 1
        self._written += len(content)
        if len(content) > FILE_LIMIT:
            raise _too_much(f"the file {cut(name, 200)} has more than {FILE_LIMIT >> 20} MiB")
        if self._count > _FILES:
            raise _too_much(f"the instance has more than {_FILES:,} files")
        if self._written > _BYTES:
            raise _too_much(f"the files of the instance have more than {_BYTES >> 20} MiB")
        self._files.write(path, content)
        below = path.removeprefix(f"{self.directory}/")
        if below != path:
            self._contents[below] = content
            (self._executable.add if executable else self._executable.discard)(below)

    def result(self, notices: tuple[str, ...]) -> InstanceFiles:
        """Return the files. Raises `CatalogError` for paths that not every file system can tell apart."""
        _check_names(self._contents)
        return InstanceFiles(
            instance=self._instance,
            files=dict(sorted(self._contents.items())),
            notices=notices,
            executable=frozenset(self._executable),
        )


def _joined(directory: str, name: str, what: str) -> str:
    """Return the path of a name below a directory."""
    path = posixpath.normpath(posixpath.join(directory, name))
    if name.startswith("/") or not (path == directory or path.startswith(f"{directory}/")):
        raise CatalogError(
            "refused",
            f"{what} leads out of the directory of the instance",
            remedy="Write below the instance's own directory, or below ${_base_directory}",
        )
    if any(ord(character) < 32 or ord(character) == 127 for character in path) or _is_not_unicode(path):
        raise CatalogError(
            "refused",
            f"{what} has a control character",
            remedy="Name files with letters, digits, dots and dashes",
        )
    if any(len(part.encode()) > _NAME_LIMIT for part in path.split("/")):
        raise CatalogError(
            "limit", f"{what} has a name of more than {_NAME_LIMIT} bytes", remedy="Shorten the name of the file"
        )
    return path


def _is_not_unicode(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return True
    return False


def _too_much(problem: str) -> CatalogError:
    return CatalogError("limit", problem, remedy="Split the component into several")


def _check_names(files: Mapping[str, bytes]) -> None:
    seen: dict[str, str] = {}
    for path in files:
        folded = unicodedata.normalize("NFC", path).casefold()
        if folded in seen:
            raise CatalogError(
                "render",
                f"the paths {seen[folded]!r} and {path!r} differ only in case or in their form of Unicode",
                remedy="Rename one of the two files; not every file system can hold both",
            )
        seen[folded] = path
    for path in files:
        parent = path
        while parent := posixpath.dirname(parent):
            if parent in files:
                raise CatalogError(
                    "render",
                    f"{parent} is a file, and the directory of {path}",
                    remedy="Rename one of the two",
                )
