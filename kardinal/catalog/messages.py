"""Requests to a worker, and its answers: a header, which is a JSON object, then bytes.

The header `files` of an answer has paths and lengths, and the contents follow one after the other.

A worker has executed templates of others, so that its answers are not believed: their size and shape are checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, cast, get_args

import orjson

from kardinal.bounded import ForeignBytes, JsonLimits, NotJson, OverLimit, decode, mebibytes
from kardinal.catalog.errors import CatalogError, ErrorKind, Where
from kardinal.catalog.values import InstanceFiles, Merged
from kardinal.objects.text import cut, escaped

__all__ = [
    "FILES",
    "LONGEST_ANSWER",
    "TOTAL",
    "encode",
    "error_header",
    "files_of",
    "merged_of",
    "parse",
    "raise_error",
    "too_large",
]

_LENGTH: Final = 8
_HEADER: Final = JsonLimits(size=64 << 20, depth=160, containers=2_000_000, pieces=8_000_000)
_SHOWN: Final = 2_000
FILES: Final = 5_000
TOTAL: Final = 64 << 20
ONE_FILE: Final = 8 << 20
"""The most files of a catalog, their bytes together, and the bytes of one."""
LONGEST_ANSWER: Final = _LENGTH + _HEADER.size + TOTAL

FOREIGN = ForeignBytes(
    "what a worker merges and renders",
    of="tenant",
    size=f"{mebibytes(_HEADER.size)} of values, {mebibytes(TOTAL)} in {FILES:,} files, {mebibytes(ONE_FILE)} a file",
    unpacked="not compressed",
    structure=_HEADER.structure,
    time="60 s of CPU and 180 s for each instance",
    held="one answer for each worker",
    decoded="made in a worker, decoded on a thread",
    tests=("catalog/test_worker_answers.py", "catalog/test_worker_walls.py"),
)


def encode(header: Mapping[str, Any], content: bytes = b"") -> bytes:
    """Return a message."""
    encoded = orjson.dumps(header)
    return b"".join((len(encoded).to_bytes(_LENGTH), encoded, content))


def parse(message: bytes) -> tuple[dict[str, Any], memoryview]:
    """Return header and content of a message. Raises `CatalogError`."""
    ends = _LENGTH + int.from_bytes(message[:_LENGTH])
    try:
        header = decode(message[_LENGTH:ends], _HEADER)
    except OverLimit as error:
        raise CatalogError("limit", f"of what is merged or rendered, {error}") from None
    except NotJson:
        raise _malformed() from None
    if not isinstance(header, dict):
        raise _malformed()
    return header, memoryview(message)[ends:]


def error_header(error: CatalogError) -> dict[str, Any]:
    """Return the header of an answer that is an error."""
    message = error.message.removeprefix(f"{error.where}: ") if str(error.where) else error.message
    return {"error": {"kind": error.kind, "message": message, "remedy": error.remedy, "where": asdict(error.where)}}


def raise_error(header: Mapping[str, Any]) -> None:
    """Raise the `CatalogError` of an answer, if it is one."""
    match header.get("error"):
        case None:
            return
        case {"kind": str(kind), "message": str(message), "remedy": str(remedy), "where": dict(where)} if (
            kind in get_args(ErrorKind)
        ):
            texts = {name: _shown(str(where.get(name, ""))) for name in ("repository", "file", "instance", "parameter")}
            line = where.get("line")
            raise CatalogError(
                cast(ErrorKind, kind),
                _shown(message),
                where=Where(**texts, line=line if isinstance(line, int) else 0),
                remedy=_shown(remedy),
            )
    raise _malformed()


def merged_of(value: object) -> Merged:
    """Return a merged node of an answer."""
    match value:
        case {"applications": list(applications), "classes": list(classes), "parameters": dict(parameters)}:
            return Merged(tuple(map(str, applications)), tuple(map(str, classes)), parameters)
    raise _malformed()


def files_of(instance: str, header: Mapping[str, Any], content: memoryview) -> InstanceFiles:
    """Return the files of an instance of an answer."""
    match header:
        case {"files": list(listed), "notices": list(notices), "executable": list(executable)}:
            pass
        case _:
            raise _malformed()
    if len(listed) > FILES:
        raise too_large(instance, f"more than {FILES:,} files")
    files: dict[str, bytes] = {}
    at = 0
    for entry in listed:
        match entry:
            case [str(path), int(length)] if length >= 0 and _is_path(path) and path not in files:
                pass
            case _:
                raise _malformed()
        if length > ONE_FILE:
            raise too_large(instance, f"the file {_shown(path)} with more than {mebibytes(ONE_FILE)}")
        files[path] = bytes(content[at : at + length])
        at += length
    if at != len(content) or not files.keys() >= set(map(str, executable)):
        raise _malformed()
    return InstanceFiles(instance, files, tuple(_shown(str(notice)) for notice in notices), frozenset(executable))


def too_large(instance: str, what: str) -> CatalogError:
    """Return the error for an instance, or all, that make more files or bytes than a catalog may have."""
    return CatalogError(
        "limit",
        f"templates make {what}",
        where=Where(instance=instance),
        remedy=f"A catalog has at most {FILES:,} files, {mebibytes(TOTAL)}, {mebibytes(ONE_FILE)} a file",
    )


def _is_path(path: str) -> bool:
    return path.isprintable() and not {"", ".", ".."} & set(path.split("/"))


def _shown(text: str) -> str:
    return cut(escaped(text, kept="\n"), _SHOWN)


def _malformed() -> CatalogError:
    return CatalogError("render", "the worker answered with something else than it was asked for")
