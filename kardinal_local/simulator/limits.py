"""Say on a Pipeline what the simulator cannot do of it, so that `kardinal status` shows why an environment waits.

The condition `Simulated` stands, and is False, for as long as something is not simulated. Events say when each was met
first; they are gone after an hour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kardinal.api import PIPELINE, Pipeline, set_condition
from kardinal.kube import Client
from kardinal.objects import JsonObject
from kardinal.objects.conditions import MESSAGE_LIMIT
from kardinal.objects.text import cut
from kardinal.runtime import Clock, StatusWriter
from kardinal_local.simulator.environments import State

__all__ = ["SIMULATED", "Limit", "Limits", "forget_limits", "limits_of"]

SIMULATED = "Simulated"

Limit = tuple[str, str]
"""A reason in CamelCase, and a sentence."""


class Limits:
    """Writes the condition."""

    def __init__(self, status: StatusWriter, clock: Clock) -> None:
        self._status = status
        self._clock = clock

    async def tell(self, stored: JsonObject, limits: Sequence[Limit]) -> None:
        """Write what is not simulated of a Pipeline; nothing of one that is simulated whole."""
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


def limits_of(pipeline: Pipeline, state: State) -> Iterator[Limit]:
    """Yield what is not simulated of the environments as they were rendered last."""
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
    """Take the condition off every Pipeline, where no simulator runs any more to do so."""
    status = StatusWriter(client)
    for stored in (await client.list(PIPELINE)).items:
        pipeline = Pipeline.model_validate(stored)
        conditions = tuple(each for each in pipeline.status.conditions if each.type != SIMULATED)
        await status.write(
            PIPELINE, stored, pipeline.status.model_copy(update={"conditions": conditions}).to_json(), shared=True
        )
