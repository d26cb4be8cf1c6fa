"""Handle create, update and patch; `deleting` handles the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from aiohttp import web

from kardinal_local.plane import schemas, statuses
from kardinal_local.plane.apply import Writer
from kardinal_local.plane.builtin import CUSTOM_RESOURCE_DEFINITION
from kardinal_local.plane.clock import Clock
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import StatusError
from kardinal_local.plane.handlers.deleting import Deleting
from kardinal_local.plane.handlers.parameters import write_options
from kardinal_local.plane.handlers.reading import renderer_for
from kardinal_local.plane.kinds import Kind
from kardinal_local.plane.objects import (
    SCALE_KIND,
    Deletion,
    Guard,
    Lists,
    Objects,
    WriteOptions,
    Written,
    applied,
    read_scale,
    rescaled,
    scale_of,
    viewed,
)
from kardinal_local.plane.patches import go_text, json_patch, merge_patch, strategic_merge
from kardinal_local.plane.security import Access, refuse_escalation
from kardinal_local.plane.storage import Store
from kardinal_local.plane.wire import (
    Exchange,
    Target,
    content_type,
    decode_configuration,
    decode_document,
    decode_patch,
    flag,
    json_response,
    read_body,
)

__all__ = ["Writing"]

APPLY = "application/apply-patch+yaml"
_JSON_PATCH = "application/json-patch+json"
_MERGE_PATCH = "application/merge-patch+json"
_STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_PATCH_TYPES = (_JSON_PATCH, _MERGE_PATCH, _STRATEGIC_PATCH, APPLY)

Modify = Callable[[JsonObject], JsonObject]


class Writing:
    """Answers requests that change objects."""

    def __init__(
        self,
        store: Store,
        objects: Objects,
        deletion: Deletion,
        *,
        lists: Lists,
        access: Access,
        clock: Clock,
    ) -> None:
        self._store = store
        self._objects = objects
        self._deleting = Deleting(store, deletion, lists=lists, clock=clock)
        self._access = access
        self._clock = clock

    async def answer(self, exchange: Exchange, target: Target) -> web.Response:
        body = await read_body(exchange.request)
        if target.kind is CUSTOM_RESOURCE_DEFINITION:
            await asyncio.to_thread(schemas.load)
        try:
            return await self._act(exchange, target, body)
        finally:
            # It was decided by what is staged, a refusal too: it may not be sent before that is committed.
            await self._store.settled()

    async def _act(self, exchange: Exchange, target: Target, body: bytes) -> web.Response:
        match exchange.verb:
            case "create":
                return await self._create(exchange, target, body)
            case "update":
                return await self._update(exchange, target, body)
            case "patch":
                return await self._patch(exchange, target, body)
        return await self._deleting.answer(exchange, target, body)

    async def _create(self, exchange: Exchange, target: Target, body: bytes) -> web.Response:
        sent = await decode_document(body, content_type(exchange.request), kind=target.kind)
        options = self._options(exchange, target, faults=sent.strict)
        written = self._objects.create(target.kind, sent.document, namespace=target.namespace, options=options)
        return self._written(exchange, target, written)

    async def _update(self, exchange: Exchange, target: Target, body: bytes) -> web.Response:
        if target.subresource == "scale":
            sent = await decode_document(body, content_type(exchange.request), kind=SCALE_KIND)
            scale = self._read_scale(exchange, target, sent.document, faults=sent.strict)
            return self._rescale(exchange, target, lambda live: scale)
        sent = await decode_document(body, content_type(exchange.request), kind=target.kind)
        written = self._objects.replace(
            target.kind,
            sent.document,
            namespace=target.namespace,
            name=target.name,
            subresource=target.subresource,
            options=self._options(exchange, target, faults=sent.strict),
        )
        return self._written(exchange, target, written)

    async def _patch(self, exchange: Exchange, target: Target, body: bytes) -> web.Response:
        media_type = content_type(exchange.request)
        kind = target.kind
        if media_type not in _PATCH_TYPES or (media_type == _STRATEGIC_PATCH and kind.custom):
            if kind.custom:
                raise statuses.unsupported_media_type(_JSON_PATCH, _MERGE_PATCH, APPLY)
            raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})
        if media_type == APPLY:
            return await self._apply(exchange, target, body)
        patch, faults = decode_patch(body, strategic=media_type == _STRATEGIC_PATCH)
        if target.subresource == "scale":
            patched = _patcher(SCALE_KIND, media_type, patch)
            return self._rescale(
                exchange,
                target,
                lambda live: self._read_scale(exchange, target, patched(live), faults=faults, patched=True),
            )
        written = self._objects.patch(
            kind,
            _patcher(kind, media_type, patch),
            shown=go_text(patch) if media_type == _STRATEGIC_PATCH else None,
            namespace=target.namespace,
            name=target.name,
            subresource=target.subresource,
            options=self._options(exchange, target, faults=faults),
        )
        return self._written(exchange, target, written)

    def _read_scale(
        self, exchange: Exchange, target: Target, document: Any, *, faults: tuple[str, ...], patched: bool = False
    ) -> JsonObject:
        """The scale in a body, or what a patch made of one."""
        scale, warnings = read_scale(
            document,
            namespace=target.namespace,
            name=target.name,
            validation=write_options(exchange, applied=False).validation,
            faults=faults,
            patched=patched,
        )
        exchange.warnings.extend(warnings)
        return scale

    def _rescale(self, exchange: Exchange, target: Target, modify: Modify) -> web.Response:
        """Change an object through its scale; `modify` makes a new scale of the present one."""
        options = self._options(exchange, target)

        def rescale(live: JsonObject) -> JsonObject:
            return rescaled(target.kind, live, modify, manager=options.manager)

        return self._scaled(exchange, target, rescale, options=options)

    def _scaled(self, exchange: Exchange, target: Target, modify: Modify, *, options: WriteOptions) -> web.Response:
        kind = target.kind
        written = self._objects.patch(
            kind,
            modify,
            namespace=target.namespace,
            name=target.name,
            subresource=target.subresource,
            options=options,
        )
        exchange.warnings.extend(written.warnings)
        return json_response(scale_of(kind, viewed(kind, written.entry.decode())))

    async def _apply(self, exchange: Exchange, target: Target, body: bytes) -> web.Response:
        options = self._options(exchange, target, applied=True)
        configuration, fault = await decode_configuration(body)
        if fault and options.validation == "Strict":
            raise statuses.bad_request(f"error strict decoding YAML: {fault}")
        if fault and options.validation == "Warn":
            exchange.warnings.extend(line.strip() for line in fault.splitlines()[1:])
        kind, force = target.kind, flag(exchange.query, "force")
        if target.subresource == "scale":
            writer = Writer(options.manager, self._clock.now(), target.subresource)
            return self._scaled(
                exchange,
                target,
                lambda live: applied(kind, live, configuration, by=writer, force=force),
                options=options,
            )
        written = self._objects.apply(
            kind,
            configuration,
            namespace=target.namespace,
            name=target.name,
            subresource=target.subresource,
            force=force,
            options=options,
        )
        return self._written(exchange, target, written)

    def _options(
        self, exchange: Exchange, target: Target, *, applied: bool = False, faults: tuple[str, ...] = ()
    ) -> WriteOptions:
        options = write_options(exchange, applied=applied)
        return replace(options, faults=faults, guard=self._guard(exchange, target))

    def _guard(self, exchange: Exchange, target: Target) -> Guard:
        """What is asked once it is known what would be stored."""

        def check(document: JsonObject, old: JsonObject | None) -> None:
            asked = exchange.asked
            if old is None and asked.verb != "create":
                self._access.require(exchange.user, replace(asked, verb="create"))
            refuse_escalation(exchange.user, asked, target.kind, document, old=old, access=self._access)

        return check

    def _written(self, exchange: Exchange, target: Target, written: Written) -> web.Response:
        exchange.warnings.extend(written.warnings)
        if not target.kind.enforced:
            exchange.warnings.append(f"{target.kind.kind}: stored, not enforced")
        body = renderer_for(exchange, target, clock=self._clock).object(written.entry)
        return json_response(body, status=201 if written.created else 200)


def _patcher(kind: Kind, media_type: str, patch: Any) -> Modify:
    match media_type:
        case "application/json-patch+json":
            return lambda live: json_patch(live, patch)
        case "application/merge-patch+json":
            return lambda live: merge_patch(live, patch)
    return lambda live: strategic_merge(live, patch, schema=kind.schema)
