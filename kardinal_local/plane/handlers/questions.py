"""Handle reviews and token requests, which are created to be answered and never stored.

Nothing of it is stored, and yet it is asked with `create`, so that it needs the permission to do so.
"""

from __future__ import annotations

from aiohttp import web

from kardinal_local.plane.handlers.parameters import write_options
from kardinal_local.plane.objects import Source
from kardinal_local.plane.security import TOKEN_REQUEST, Reviews, TokenRequests
from kardinal_local.plane.wire import (
    Exchange,
    Target,
    content_type,
    decode_document,
    json_response,
    manager_of,
    read_body,
)

__all__ = ["Questions"]


class Questions:
    """Answers them."""

    def __init__(self, reviews: Reviews, token_requests: TokenRequests) -> None:
        self._reviews = reviews
        self._token_requests = token_requests

    def concern(self, target: Target) -> bool:
        """Whether `target` is one."""
        return not target.kind.stored or target.subresource == "token"

    async def answer(self, exchange: Exchange, target: Target) -> web.Response:
        body = await read_body(exchange.request)
        kind = TOKEN_REQUEST if target.kind.stored else target.kind
        sent = await decode_document(body, content_type(exchange.request), kind=kind)
        validation = write_options(exchange, applied=False).validation
        document, source = Source(kind, validation, sent.strict).read(sent.document)
        exchange.warnings.extend(source.judge())
        manager, namespace = manager_of(exchange), target.namespace
        if target.kind.stored:
            answer = self._token_requests.answer(
                target.kind, document, namespace=namespace, name=target.name, manager=manager
            )
        else:
            answer = self._reviews.answer(
                target.kind, document, user=exchange.user, namespace=namespace, manager=manager
            )
        return json_response(answer, status=201)
