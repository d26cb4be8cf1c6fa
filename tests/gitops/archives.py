"""Serve archives of files over HTTP, as Flux's source-controller does."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from kardinal.objects import JsonObject
from tests.gitops.http_server import answering

__all__ = ["Archives", "archives"]


class Archives:
    """The archives that are served below a URL, by path."""

    def __init__(self, url: str, contents: dict[str, bytes]) -> None:
        self._url = url
        self._contents = contents

    def artifact(self, tar: bytes, commit: str) -> JsonObject:
        """Serve the files of a commit; returns what the status of their source says of them."""
        # Without a time, so that the same files are the same bytes.
        data = gzip.compress(tar, mtime=0)
        digest = hashlib.sha256(data).hexdigest()
        self._contents[f"/{digest}.tar.gz"] = data
        return {
            "digest": f"sha256:{digest}",
            "lastUpdateTime": "2026-01-01T00:00:00Z",
            "path": f"{digest}.tar.gz",
            "revision": f"main@sha1:{commit}",
            "url": f"{self._url}/{digest}.tar.gz",
        }


@contextmanager
def archives() -> Iterator[Archives]:
    """Yield archives that are served for the length of a block."""
    contents: dict[str, bytes] = {}
    with answering(contents.get) as url:
        yield Archives(url, contents)
