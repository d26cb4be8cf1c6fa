"""`acme-ticket`: open a ticket about a promotion, here a file in a directory of the agent.

The declaration is read by every program, since the controller refuses what no agent executes. The effect is a module of
its own that the agent alone imports.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kardinal.promotion.steps.declaration import StepConfig, StepDeclaration

__all__ = ["TICKET", "TicketConfig"]


class TicketConfig(StepConfig):
    """`queue`: the queue that the ticket is for."""

    queue: str


def _effect() -> Any:
    return import_module("acme_kardinal.ticket_effect").OpenTicket()


TICKET = StepDeclaration(
    name="acme-ticket",
    about="Opens a ticket about the promotion.",
    config=TicketConfig,
    outside=True,
    permission=True,
    effect=_effect,
)
