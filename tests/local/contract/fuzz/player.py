"""Asking one server the requests of a sequence, in order."""

from __future__ import annotations

import copy
from typing import Any

from tests.local.contract.fuzz.outcomes import Outcome, outcome_of
from tests.local.contract.fuzz.server import Server
from tests.local.contract.fuzz.steps import PATCH_TYPES, JsonObject, Sequence, Step, edited

__all__ = ["play"]

_ATTEMPTS = 5


async def play(server: Server, sequence: Sequence) -> list[Outcome]:
    """One outcome per step."""
    player = _Player(server, sequence)
    return [await player.ask(step) for step in sequence.steps]


class _Player:
    """Knows the object as the server answered it last, as a client would."""

    def __init__(self, server: Server, sequence: Sequence) -> None:
        self._server = server
        self._sequence = sequence
        self._live: JsonObject | None = None

    async def ask(self, step: Step) -> Outcome:
        code, body = await self._send(step)
        outcome = outcome_of(code, body, before=self._live)
        if code < 300 and "dryRun" not in step.query:
            self._live = body if outcome.object is not None else None
        return outcome

    async def _send(self, step: Step) -> tuple[int, Any]:
        sequence, server = self._sequence, self._server
        path = f"{sequence.collection}/{sequence.name}"
        if step.subresource:
            path += f"/{step.subresource}"
        match step.verb:
            case "create":
                return await server.ask("POST", sequence.collection, step.body, **step.query)
            case "delete":
                return await server.ask("DELETE", path)
            case "update":
                return await self._update(step, path)
        return await server.ask("PATCH", path, step.body, content_type=PATCH_TYPES[step.verb], **step.query)

    async def _update(self, step: Step, path: str) -> tuple[int, Any]:
        """PUT what was read; where a controller writes too, read again until nobody was faster."""
        patience = _ATTEMPTS if self._sequence.kind == "Deployment" else 1
        stale = any(place == ("metadata", "resourceVersion") for place, _ in step.edits)
        while True:
            if patience > 1 and self._live is not None:
                code, found = await self._server.ask("GET", f"{self._sequence.collection}/{self._sequence.name}")
                self._live = found if code == 200 else self._live
            base = self._live if self._live is not None else copy.deepcopy(self._sequence.base)
            code, body = await self._server.ask("PUT", path, edited(base, step), **step.query)
            patience -= 1
            if code != 409 or stale or patience < 1:
                return code, body
