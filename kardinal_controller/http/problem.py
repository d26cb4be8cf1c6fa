"""Errors of the HTTP API, as `application/problem+json` (RFC 9457).

Paths and messages quote text from the client, so the number of errors and the size of an answer are limited here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import orjson
from aiohttp import web

from kardinal.objects.text import cut

__all__ = ["ERRORS_SHOWN", "FieldError", "ProblemError"]

ERRORS_SHOWN = 50
"""The most field errors in one answer."""
ANSWER_LIMIT = 16 * 1024
"""The maximum size of an answer in bytes."""

_DETAIL_LIMIT = 1024
_PATH_LIMIT = 200
_MESSAGE_LIMIT = 400
_COMMA = 1


@dataclass(frozen=True, slots=True)
class FieldError:
    """The error of one field of a request body; `path` is the place of the field, for example `artifacts.images[0]`."""

    path: str
    message: str

    def to_json(self) -> dict[str, str]:
        return {"field": cut(self.path, _PATH_LIMIT), "message": cut(self.message, _MESSAGE_LIMIT)}


@dataclass(eq=False)
class ProblemError(Exception):
    """An unsuccessful answer. `detail` contains the remedy and never a credential."""

    status: HTTPStatus
    detail: str
    errors: Sequence[FieldError] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    def response(self) -> web.Response:
        body: dict[str, Any] = {
            "type": "about:blank",
            "title": self.status.phrase,
            "status": self.status.value,
            "detail": cut(self.detail, _DETAIL_LIMIT),
        }
        if self.errors:
            body["errors"] = self._shown(ANSWER_LIMIT - len(orjson.dumps({**body, "errors": []})))
        return web.Response(
            status=self.status.value,
            body=orjson.dumps(body),
            content_type="application/problem+json",
            headers=dict(self.headers),
        )

    def _shown(self, room: int) -> list[dict[str, str]]:
        """Return the first errors, as many as fit into `room` bytes."""
        shown = []
        for error in self.errors[:ERRORS_SHOWN]:
            entry = error.to_json()
            room -= len(orjson.dumps(entry)) + _COMMA
            if room < 0:
                break
            shown.append(entry)
        return shown
