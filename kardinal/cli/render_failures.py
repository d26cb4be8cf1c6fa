"""Failures of the simulator of `kardinal local up --simulate` to render an environment.

It says so in Events: a Warning about the PromotionStep, and a normal one once it could render again.
"""

from __future__ import annotations

from kardinal.api import PromotionStep
from kardinal.cli.session import Session
from kardinal.kube import Forbidden
from kardinal.objects import EVENT

__all__ = ["EVENTS_OF_STEPS", "render_failure", "render_failures"]

EVENTS_OF_STEPS = "regarding.kind=PromotionStep"
_FAILED = "RenderFailed"
_RENDERED = "Rendered"


async def render_failures(session: Session) -> dict[str, str]:
    """Return the failures that last, by uid of the PromotionStep; none for a user who may not list Events."""
    try:
        events = (await session.client.list(EVENT, session.namespace, fields=EVENTS_OF_STEPS)).items
    except Forbidden:
        return {}
    failures: dict[str, str] = {}
    # Their times are of whole series; the one that was written last was said last.
    for event in sorted(events, key=lambda event: int(event["metadata"]["resourceVersion"])):
        uid = event["regarding"].get("uid", "")
        if event["reason"] == _FAILED:
            failures[uid] = event.get("note", "")
        elif event["reason"] == _RENDERED:
            failures.pop(uid, None)
    return failures


def render_failure(step: PromotionStep | None, failures: dict[str, str]) -> str | None:
    """Return what to show of a step, which is of no interest any more when it is Verified."""
    if step is None or step.status.state == "Verified" or step.metadata.uid not in failures:
        return None
    return f"simulator: {failures[step.metadata.uid]}"
