"""Report on a Pipeline what the simulator cannot simulate, so that `kardinal status` shows why an environment waits.

The Pipeline has the condition `Simulated` with status False as long as some of its features are not simulated. Events
are written, too, but an API server deletes them after an hour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kardinal.clock import Clock
from kardinal.kube import Client
from kardinal.objects import JsonObject
from kardinal.objects.conditions import MESSAGE_LIMIT
from kardinal.objects.text import cut
from kardinal.promotion.api import Pipeline, set_condition
from kardinal.promotion.kinds import PIPELINE
from kardinal.runtime import StatusWriter
from kardinal_local.simulator.environments import PipelineState

__all__ = ["SIMULATED", "Limit", "SimulationLimits", "forget_limits", "limits_of"]

SIMULATED = "Simulated"

Limit = tuple[str, str]
"""The reason and the message of the condition, for example `("KindNotApplied", "dev: Ingress is not applied")`."""


class SimulationLimits:
    """Writes the condition `Simulated`."""

    def __init__(self, status: StatusWriter, clock: Clock) -> None:
        self._status = status
        self._clock = clock

    async def tell(self, stored: JsonObject, limits: Sequence[Limit]) -> None:
        """Write the condition of a Pipeline; without limits, remove it."""
        pipeline = Pipeline.model_validate(stored)
        conditions = tuple(each for each in pipeline.status.conditions if each.type != SIMULATED)
        if limits:
            message = cut("; ".join(dict.fromkeys(text for _, text in limits)), MESSAGE_LIMIT)
            conditions = set_condition(
                pipeline.status.conditions,
                SIMULATED,
                "False",
                reason=limits[0][0],
                message=message,
                now=self._clock.now(),
            )
        status = pipeline.status.model_copy(update={"conditions": conditions})
        await self._status.write(PIPELINE, stored, status.to_json(), shared=True)


def limits_of(pipeline: Pipeline, state: PipelineState) -> Iterator[Limit]:
    """Yield the limits of a Pipeline, by the last renderings of its environments."""
    if pipeline.spec.git.layout == "branch":
        yield "LayoutNotSimulated", "git.layout: the branches of environments are not followed, only git.branch is"
    for name, known in state.known.items():
        if known.failure is not None:
            yield "RenderFailed", f"{name} cannot be rendered: {known.failure}"
        for field in known.unknown:
            yield "FieldNotRendered", f"{name}: {field} is not understood without kustomize or kubectl on PATH"
        for kind in known.not_applied:
            yield "KindNotApplied", f"{name}: {kind} is not applied"
    for note in sorted(state.noted):
        yield "NamespaceDiffers", note


async def forget_limits(client: Client) -> None:
    """Remove the condition from every Pipeline; called if no simulator runs that would remove it."""
    status = StatusWriter(client)
    for stored in (await client.list(PIPELINE)).items:
        pipeline = Pipeline.model_validate(stored)
        conditions = tuple(each for each in pipeline.status.conditions if each.type != SIMULATED)
        await status.write(
            PIPELINE, stored, pipeline.status.model_copy(update={"conditions": conditions}).to_json(), shared=True
        )
