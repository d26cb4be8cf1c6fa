"""Read the objects of a Pipeline from the API server."""

from __future__ import annotations

import asyncio

from kardinal.api import BUNDLE, PIPELINE, POLICY_GATE, PROMOTION_STEP, Bundle, PolicyGate, PromotionStep
from kardinal.api.names import LABEL_BUNDLE, LABEL_TYPE, TYPE_FREEZE, freeze_name, label_value
from kardinal.cli.holds import holds_of
from kardinal.cli.session import Session, unknown_bundle
from kardinal.cli.status.view import Objects
from kardinal.kube import NotFound
from kardinal.objects import GRAPH, JsonObject, ResourceType

__all__ = ["WATCHED", "read_objects"]

WATCHED: dict[ResourceType, str | None] = {PIPELINE: None, BUNDLE: None, PROMOTION_STEP: None, POLICY_GATE: None}
"""The kinds that the view is made of, for `changes`; a Graph never changes without one of them."""


async def read_objects(session: Session, pipeline: str, bundle: str | None = None) -> Objects:
    """Return the objects of a Pipeline; without `bundle` the one that is under way, else the newest, else none."""
    found, bundles = await asyncio.gather(session.pipeline(pipeline), session.bundles(pipeline))
    shown = _shown(bundles, pipeline, bundle)
    freeze, held = await asyncio.gather(
        _found(session, POLICY_GATE, freeze_name(pipeline)), holds_of(session, pipeline)
    )
    if shown is None:
        return Objects(pipeline=found, bundles=bundles, freeze=_freeze(freeze), held=held)
    selector = f"{LABEL_BUNDLE}={label_value(shown.metadata.name)}"
    steps, gates, graph = await asyncio.gather(
        session.client.list(PROMOTION_STEP, session.namespace, labels=selector),
        session.client.list(POLICY_GATE, session.namespace, labels=selector),
        _found(session, GRAPH, shown.metadata.name),
    )
    return Objects(
        pipeline=found,
        bundles=bundles,
        bundle=shown,
        steps=[PromotionStep.model_validate(item) for item in steps.items],
        gates=[PolicyGate.model_validate(item) for item in gates.items],
        graph=graph,
        freeze=_freeze(freeze),
        held=held,
    )


def _shown(bundles: list[Bundle], pipeline: str, name: str | None) -> Bundle | None:
    if name is None:
        return next((bundle for bundle in bundles if not bundle.status.has_ended), bundles[0] if bundles else None)
    for bundle in bundles:
        if bundle.metadata.name == name:
            return bundle
    raise unknown_bundle(pipeline, name)


def _freeze(gate: JsonObject | None) -> PolicyGate | None:
    if gate is None or gate["metadata"].get("labels", {}).get(LABEL_TYPE) != TYPE_FREEZE:
        return None
    return PolicyGate.model_validate(gate)


async def _found(session: Session, resource: ResourceType, name: str) -> JsonObject | None:
    try:
        return await session.client.get(resource, name, session.namespace)
    except NotFound:
        return None
