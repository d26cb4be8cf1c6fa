"""Write Events about environments that cannot be rendered.

The Event is about the PromotionStep of the environment that has not ended, or about the Pipeline if there is none. The
end of a failure is an Event, too, so the last Event tells the current state.
"""

from __future__ import annotations

from kardinal.objects import JsonObject
from kardinal.runtime import EventRecorder, Informer, ResourceRef
from kardinal_local.simulator.environments import Known

__all__ = ["FAILED", "RENDERED", "RenderFailures"]

FAILED = "RenderFailed"
RENDERED = "Rendered"
_ENDED = ("Verified", "Failed")


class RenderFailures:
    """Writes one Event for each failure to render, and one for its end."""

    def __init__(self, steps: Informer, recorder: EventRecorder) -> None:
        self._steps = steps
        self._recorder = recorder

    def tell(self, pipeline: JsonObject, environment: str, known: Known) -> None:
        """Write an Event that `environment` cannot be rendered, or can be rendered again, unless it is written already.

        `known` is the last rendering of the environment; its `told` and `untold` are updated.
        """
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
        known.told = about
        known.untold = False

    def _under_way(self, pipeline: JsonObject, environment: str) -> JsonObject | None:
        """Return the newest PromotionStep of the environment that has not ended; None if there is none."""
        metadata = pipeline["metadata"]
        found = [
            step
            for step in self._steps.list(metadata["namespace"])
            if step["spec"]["pipeline"] == metadata["name"]
            and step["spec"]["environment"] == environment
            and step.get("status", {}).get("state") not in _ENDED
        ]
        return max(found, key=lambda step: str(step["metadata"]["creationTimestamp"]), default=None)
