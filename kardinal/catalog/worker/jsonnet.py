"""Evaluate Jsonnet with gojsonnet, which sees no other files than those of the compilation.

A file is given to the engine as text, never by its path, so that only `_Importer` opens files, and errors and
`std.thisFile` show paths below the directory of the compilation. Imports are sought beside the importing file, then
below the search paths, then among our own libraries (`kardinal/catalog/lib`): `lib/kapitan.libjsonnet`,
`lib/commodore.libjsonnet` and `lib/kube.libjsonnet`.

Endless recursion ends at `_MAX_STACK`. An endless loop, and all memory of the machine, are the limits of the process.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import _gojsonnet

from kardinal.catalog import lib
from kardinal.catalog.errors import CatalogError, Where
from kardinal.catalog.worker.files import SEARCH_PATHS, Files, confined
from kardinal.catalog.worker.natives import Callback, Natives
from kardinal.objects.text import cut

__all__ = ["Jsonnet", "evaluate"]

_MAX_STACK = 500
"""The frames of gojsonnet's stack; also its default."""
_SHOWN = 2_000
_ENGINE = re.compile(r"^RUNTIME ERROR: (?:importer error: )?")
_FRAME = re.compile(r"^\t?(?P<file>[^\s:<]++):\(?(?P<line>\d++)[^\s]*+ ?", re.MULTILINE)
_OWN = "own:"
"""Before the paths of our own libraries, which cannot be those of a file of the compilation."""


def _own_libraries() -> dict[str, bytes]:
    """Return our libraries by the path that templates import; read before the process is confined."""
    directory = Path(lib.__file__).parent
    paths = sorted(path for path in directory.rglob("*") if path.suffix in (".libjsonnet", ".libsonnet"))
    return {f"lib/{path.relative_to(directory).as_posix()}": path.read_bytes() for path in paths}


_LIBRARIES = _own_libraries()


def evaluate(root: Path, file: str, variables: Mapping[str, str]) -> object:
    """Return the value of a Jsonnet file below `root`; `variables` are its external variables.

    It has no inventory and no native functions. Raises `CatalogError`.
    """
    return Jsonnet(Files(root)).evaluate(file, variables)


class Jsonnet:
    """Evaluates files; `natives` holds the error of a native function that failed."""

    def __init__(self, files: Files, natives: Natives | None = None) -> None:
        self._files = files
        self._natives = natives

    def evaluate(self, file: str, variables: Mapping[str, str], callbacks: Mapping[str, Callback] | None = None) -> Any:
        """Return the value of a file. `callbacks`: the native functions, by name. Raises `CatalogError`."""
        try:
            text = self._files.read_text(file)
        except FileNotFoundError:
            raise CatalogError(
                "render", f"there is no file {file}", remedy="Add it, or correct the path that names it"
            ) from None
        return self.evaluate_text(confined(file), text, variables, callbacks)

    def evaluate_text(
        self, file: str, text: str, variables: Mapping[str, str], callbacks: Mapping[str, Callback] | None = None
    ) -> Any:
        """Return the value of a text that counts as the file `file`. Raises `CatalogError`."""
        importer = _Importer(self._files)
        try:
            result = _gojsonnet.evaluate_snippet(
                file,
                text,
                max_stack=_MAX_STACK,
                ext_vars=dict(variables),
                import_callback=importer,
                native_callbacks=dict(callbacks or {}),
            )
        except (RuntimeError, SystemError, TypeError, ValueError) as error:
            failure = importer.failure or (self._natives.failure if self._natives else None)
            raise _explained(file, str(error), failure) from None
        return json.loads(result)


class _Importer:
    """Finds and reads the files of `import`, `importstr` and `importbin`. `failure`: the error that ended it."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.failure: Exception | None = None

    def __call__(self, directory: str, path: str) -> tuple[str, bytes]:
        try:
            return self._read(directory, path)
        except Exception as error:
            self.failure = error
            raise

    def _read(self, directory: str, path: str) -> tuple[str, bytes]:
        own = directory.startswith(_OWN)
        for base in SEARCH_PATHS if own else (directory, *SEARCH_PATHS):
            try:
                found = confined(posixpath.join(base, path))
            except CatalogError:
                # `../lib/a.libsonnet` beside the importing file may be allowed, and below a search path not.
                if base == SEARCH_PATHS[-1] or path.startswith("/"):
                    raise
                continue
            if self._files.is_file(found):
                return found, _universal(self._files.read_text(found))
        library = posixpath.normpath(path)
        if own and posixpath.normpath(posixpath.join(directory.removeprefix(_OWN), path)) in _LIBRARIES:
            library = posixpath.normpath(posixpath.join(directory.removeprefix(_OWN), path))
        if library in _LIBRARIES:
            return f"{_OWN}{library}", _LIBRARIES[library]
        raise CatalogError(
            "render",
            f"the import {cut(path, 200)!r} is not found",
            remedy=f"Imports are sought beside the importing file, then in {', '.join(SEARCH_PATHS)}; add the library "
            "that has it to the component's jsonnetfile.json",
        )


def _universal(text: str) -> bytes:
    return text.replace("\r\n", "\n").replace("\r", "\n").encode()


def _explained(file: str, message: str, failure: Exception | None) -> CatalogError:
    """Return the error of the engine with the file and line of its first frame, and our own reason if there is one."""
    message = _ENGINE.sub("", message)
    frame = _FRAME.search(message)
    where = Where(file=frame["file"].removeprefix(_OWN), line=int(frame["line"])) if frame else Where(file=file)
    match failure:
        case CatalogError():
            return CatalogError(failure.kind, failure.problem, where=where, remedy=failure.remedy)
        case FileNotFoundError():
            return CatalogError(
                "render",
                f"there is no file {cut(str(failure), 200)}",
                where=where,
                remedy=f"Files are sought in {', '.join(SEARCH_PATHS)}",
            )
        case RecursionError():
            return CatalogError("limit", "a value is nested too deep", where=where, remedy="Write it with fewer levels")
        case Exception():
            return CatalogError(
                "render",
                f"a native function failed: {cut(str(failure), _SHOWN)}",
                where=where,
                remedy="Correct its arguments",
            )
    first = cut(_FRAME.sub("", message.partition("\n")[0]) or "unknown error", _SHOWN)
    if "max stack frames exceeded" in message:
        return CatalogError(
            "limit",
            f"Jsonnet calls functions more than {_MAX_STACK} deep",
            where=where,
            remedy="End the recursion, or use std.foldl",
        )
    return CatalogError("render", f"Jsonnet: {first}", where=where, remedy="Correct the template")
