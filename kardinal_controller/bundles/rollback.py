"""Rollbacks among the Bundles: check that a rollback restores what it names, and find the recorded digests of that.

A rollback goes to an environment without those before it, so what lets it go there is the proof that its artifacts ran
there before. That stands in the status of the Bundle that it restores, which only the controller writes, and is read
from the API server: a cache may have a Bundle of that name that is gone.
"""

from __future__ import annotations

from kardinal.kube import Client, NotFound
from kardinal.promotion.api import Bundle, Pipeline
from kardinal.promotion.api.bundle import ResolvedImage
from kardinal.promotion.kinds import BUNDLE
from kardinal.promotion.translation.errors import InvalidSpec
from kardinal.promotion.translation.pins import recorded_digests, restored_pin_problems
from kardinal.promotion.translation.rollback import rollback_problems
from kardinal_controller.caches import Caches

__all__ = ["check_rollback", "recorded_before"]


async def check_rollback(bundle: Bundle, pipeline: Pipeline, client: Client) -> None:
    """Raise `InvalidSpec` if a Bundle is a rollback without a proof that the restored Bundle ran there before."""
    rollback = bundle.spec.intent.rollback
    if rollback is None:
        return
    try:
        found = await client.get(BUNDLE, rollback.restores.name, bundle.metadata.namespace)
    except NotFound:
        found = None
    restored = Bundle.model_validate(found) if found is not None else None
    problems = list(rollback_problems(bundle, restored, pipeline=pipeline.metadata.name))
    if restored is not None and not problems:
        problems += restored_pin_problems(bundle, restored, pipeline.spec.environments)
    if problems:
        raise InvalidSpec(problems)


def recorded_before(bundle: Bundle, caches: Caches) -> tuple[ResolvedImage, ...]:
    """Return the recorded digests of the Bundle that a rollback restores; empty for a Bundle that is no rollback."""
    rollback = bundle.spec.intent.rollback
    found = caches.bundles.get(bundle.metadata.namespace, rollback.restores.name) if rollback is not None else None
    if rollback is None or found is None or found["metadata"]["uid"] != rollback.restores.uid:
        return ()
    return recorded_digests(Bundle.model_validate(found), rollback.environments)
