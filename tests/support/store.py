"""The store of a real API server, read and written behind its back through etcd's JSON gateway.

Two things a test needs are quick and exact only here: what every object's revision is at one moment, and putting
everything back to how it was before the test. Deleting through the API takes seconds where namespaces are concerned;
here it is one transaction, and the API server hears of it through the watch that it keeps on its store anyway.

The requests block, as the event loop of the test has nothing to do that the answer does not decide.
"""

from __future__ import annotations

import base64
import http.client
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import orjson

from tests.support.exchange import exchange

__all__ = ["Etcd", "Stored"]

_OPERATIONS = 100
"""In one transaction; etcd takes 128 unless told otherwise."""

_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Stored:
    """One object: its path below /registry/, its revision, and its bytes where they were asked for."""

    path: str
    revision: int
    value: bytes = b""


class Etcd:
    """A connection to etcd."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=_SECONDS)

    def below(self, *prefixes: str, values: bool = False) -> list[Stored]:
        """Everything below some paths, at one moment."""
        operations = [{"request_range": _range(prefix) | {"keys_only": not values}} for prefix in prefixes]
        answer = self._ask("kv/txn", {"success": operations})
        return [
            Stored(
                base64.b64decode(entry["key"]).decode().removeprefix(_ROOT),
                int(entry["mod_revision"]),
                base64.b64decode(entry.get("value", "")),
            )
            for response in answer["responses"]
            for entry in response["response_range"].get("kvs", ())
        ]

    def write(self, *, clear: Sequence[str] = (), delete: Sequence[str] = (), put: Sequence[Stored] = ()) -> None:
        """Remove what is below the paths `clear` and at the paths `delete`, and store; some hundred things at once."""
        operations: list[dict[str, Any]] = [
            *({"request_delete_range": _range(prefix)} for prefix in clear),
            *({"request_delete_range": {"key": _encoded(_ROOT + path)}} for path in delete),
            *(
                {"request_put": {"key": _encoded(_ROOT + one.path), "value": base64.b64encode(one.value).decode()}}
                for one in put
            ),
        ]
        for part in _parts(operations):
            self._ask("kv/txn", {"success": part})

    def lifetime(self, path: str) -> int:
        """For how many seconds one object is kept from when it was written; 0: for ever."""
        [entry] = self._ask("kv/range", {"key": _encoded(_ROOT + path)})["kvs"]
        if "lease" not in entry:
            return 0
        return int(self._ask("lease/timetolive", {"ID": entry["lease"]})["grantedTTL"])

    def forget(self) -> None:
        """Drop the history before this moment, which an API server does every five minutes."""
        revision = self._ask("kv/range", {"key": _encoded(_ROOT)})["header"]["revision"]
        put = {"key": base64.b64encode(_FORGOTTEN).decode(), "value": base64.b64encode(revision.encode()).decode()}
        self._ask("kv/compaction", {"revision": revision})
        # The API server has copies of its own, and drops those when it reads this.
        self._ask("kv/txn", {"success": [{"request_put": put}]})

    def close(self) -> None:
        self._connection.close()

    def _ask(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        content = exchange(self._connection, "POST", f"/v3/{method}", orjson.dumps(body), {})
        found: dict[str, Any] = orjson.loads(content)
        return found


_ROOT = "/registry/"
_FORGOTTEN = b"compact_rev_key"


def _range(prefix: str) -> dict[str, str]:
    key = (_ROOT + prefix).encode()
    return {"key": base64.b64encode(key).decode(), "range_end": base64.b64encode(_successor(key)).decode()}


def _successor(key: bytes) -> bytes:
    """Return the first key that does not begin with `key`."""
    return key[:-1] + bytes([key[-1] + 1])


def _encoded(key: str) -> str:
    return base64.b64encode(key.encode()).decode()


def _parts(operations: Sequence[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    for start in range(0, len(operations), _OPERATIONS):
        yield operations[start : start + _OPERATIONS]
