"""Find environments that the simulator of `kardinal local up --simulate` cannot render.

The simulator reports them by Events about the PromotionStep: a Warning with the reason `RenderFailed`, and a Normal
Event with the reason `Rendered` once rendering succeeds again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kardinal.kube import Forbidden
from kardinal.objects import JsonObject
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.views.reader import EventReader

__all__ = ["read_render_failures", "render_failure", "render_failures"]

_FAILED = "RenderFailed"
_RENDERED = "Rendered"


async def read_render_failures(reader: EventReader, namespace: str) -> dict[str, str]:
    """Return the `render_failures` of a namespace; empty for a user without the permission to list Events."""
    try:
        return render_failures(await reader.events(namespace))
    except Forbidden:
        return {}


def render_failures(events: Iterable[JsonObject]) -> dict[str, str]:
    """Return the message of each failure that is not resolved yet, by the uid of the PromotionStep (pure)."""
    failures: dict[str, str] = {}
    # An Event covers a series, so its time does not tell the order. The resourceVersion tells which was written last.
    for event in sorted(events, key=lambda event: int(event["metadata"]["resourceVersion"])):
        uid = event["regarding"].get("uid", "")
        if event["reason"] == _FAILED:
            failures[uid] = event.get("note", "")
        elif event["reason"] == _RENDERED:
            failures.pop(uid, None)
    return failures


def render_failure(step: PromotionStep | None, failures: Mapping[str, str]) -> str | None:
    """Return the text about a PromotionStep that cannot be rendered; None if it can, or is Verified already."""
    if step is None or step.status.state == "Verified" or step.metadata.uid not in failures:
        return None
    return f"simulator: {failures[step.metadata.uid]}"
