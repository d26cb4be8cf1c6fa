"""Say where a promotion is looked at that its environment cannot be rendered.

The Event stands on the PromotionStep that is under way, and on the Pipeline when there is none. What stops the failure
is an Event too, so that the last one tells how it is now.
"""

from __future__ import annotations

from kardinal.objects import JsonObject
from kardinal.runtime import EventRecorder, Informer, ResourceRef
from kardinal_local.simulator.environments import Known

__all__ = ["FAILED", "RENDERED", "Failures"]

FAILED = "RenderFailed"
RENDERED = "Rendered"
_ENDED = ("Verified", "Failed")


class Failures:
    """Tells each failure once to whom it concerns."""

    def __init__(self, steps: Informer, recorder: EventRecorder) -> None:
        self._steps = steps
        self._recorder = recorder

    def tell(self, pipeline: JsonObject, environment: str, known: Known) -> None:
        """Announce that `environment` cannot be rendered, or can be again, unless that was said."""
        if known.failure is None:
            if known.told is not None:
                note = f"{environment} can be rendered again"
                self._recorder.event(known.told, reason=RENDERED, note=note, action="Simulate")
                known.told = None
            return
        about = ResourceRef.to(self._under_way(pipeline, environment) or pipeline)
        if known.told == about and not known.untold:
            return
        note = f"{environment}: {known.failure}"
        self._recorder.event(about, type="Warning", reason=FAILED, note=note, action="Simulate")
        known.told, known.untold = about, False

    def _under_way(self, pipeline: JsonObject, environment: str) -> JsonObject | None:
        """Return the newest step of the environment that has not ended."""
        metadata = pipeline["metadata"]
        found = [
            step
            for step in self._steps.list(metadata["namespace"])
            if step["spec"]["pipeline"] == metadata["name"]
            and step["spec"]["environment"] == environment
            and step.get("status", {}).get("state") not in _ENDED
        ]
        return max(found, key=lambda step: str(step["metadata"]["creationTimestamp"]), default=None)
