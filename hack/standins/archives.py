"""Fetch the archive of a source, as builders and runners do."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator

import aiohttp

__all__ = ["ArchiveError", "fetch_archive", "files_of"]

ARCHIVE_LIMIT = 16 << 20
"""The most bytes of an archive, and of its files."""
FETCH_SECONDS = 20.0


class ArchiveError(Exception):
    """An archive that cannot be fetched or unpacked."""


async def fetch_archive(url: str) -> bytes:
    """Return the bytes of an archive. Raises `ArchiveError`."""
    timeout = aiohttp.ClientTimeout(total=FETCH_SECONDS)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as answer:
            content = await answer.content.read(ARCHIVE_LIMIT + 1) if answer.status == 200 else b""
            while len(content) <= ARCHIVE_LIMIT and (more := await answer.content.read(ARCHIVE_LIMIT)):
                content += more
            if answer.status != 200:
                raise ArchiveError(f"{url} answers {answer.status}")
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise ArchiveError(f"{url} cannot be fetched: {error or type(error).__name__}") from error
    if len(content) > ARCHIVE_LIMIT:
        raise ArchiveError(f"{url} has more than {ARCHIVE_LIMIT:,} bytes")
    return content


def files_of(archive: bytes) -> Iterator[tuple[str, bool, bytes]]:
    """Yield path, whether it can be executed, and content of each file. Raises `ArchiveError`."""
    left = ARCHIVE_LIMIT
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as opened:
            for member in opened:
                parts = member.name.split("/")
                if not member.isfile():
                    continue
                if member.name.startswith("/") or ".." in parts:
                    raise ArchiveError(f"{member.name} leaves the archive")
                left -= member.size
                if left < 0:
                    raise ArchiveError(f"its files have more than {ARCHIVE_LIMIT:,} bytes")
                content = opened.extractfile(member)
                yield member.name, bool(member.mode & 0o100), content.read() if content is not None else b""
    except (tarfile.TarError, OSError, EOFError) as error:
        raise ArchiveError(f"it is no archive: {error}") from error
