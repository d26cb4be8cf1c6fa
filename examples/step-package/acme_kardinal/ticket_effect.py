"""The effect of `acme-ticket`, in the agent."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from kardinal_agent.steps import Done, StepContext, StepResult

__all__ = ["DIRECTORY", "OpenTicket"]

DIRECTORY = "ACME_TICKETS"
"""The environment variable of the agent that names the directory of tickets."""


class OpenTicket:
    """Opens a ticket once: a step may run again after a crash, and looks for what it has done."""

    async def run(self, context: StepContext) -> StepResult:
        queue = context.planned.config.model_dump()["queue"]
        ticket = Path(os.environ[DIRECTORY]) / f"{queue}-{context.step.metadata.name}"
        # The loop of the agent is shared by all promotions: what may block runs in a thread.
        await asyncio.to_thread(ticket.touch)
        return Done(f"ticket {ticket.name} is open", outputs={"id": ticket.name})
