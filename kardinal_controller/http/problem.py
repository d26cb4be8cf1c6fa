"""Errors of the HTTP API, as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import orjson
from aiohttp import web

__all__ = ["FieldError", "ProblemError"]


@dataclass(frozen=True, slots=True)
class FieldError:
    """The error of one field of a request body; `path` is written as in the body (`artifacts.images[0]`)."""

    path: str
    message: str


@dataclass(eq=False)
class ProblemError(Exception):
    """An answer other than success. `detail` says what to do next and never repeats a credential."""

    status: HTTPStatus
    detail: str
    errors: Sequence[FieldError] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    def response(self) -> web.Response:
        body: dict[str, Any] = {
            "type": "about:blank",
            "title": self.status.phrase,
            "status": self.status.value,
            "detail": self.detail,
        }
        if self.errors:
            body["errors"] = [{"field": error.path, "message": error.message} for error in self.errors]
        return web.Response(
            status=self.status.value,
            body=orjson.dumps(body),
            content_type="application/problem+json",
            headers=dict(self.headers),
        )
