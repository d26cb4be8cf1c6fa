"""Rollbacks among the Bundles: refusing one that is not what it says.

A rollback goes to an environment without those before it, so what lets it go there is the proof that its artifacts ran
there before. That stands in the status of the Bundle that it restores, which only the controller writes, and is read
from the API server: a cache may have a Bundle of that name that is gone.
"""

from __future__ import annotations

from kardinal.api import BUNDLE, Bundle
from kardinal.kube import Client, NotFound
from kardinal.translation.errors import InvalidSpec
from kardinal.translation.rollback import rollback_problems

__all__ = ["check_rollback"]


async def check_rollback(bundle: Bundle, pipeline: str, client: Client) -> None:
    """Raise `InvalidSpec` where a Bundle of Pipeline `pipeline` is a rollback and not what it says."""
    rollback = bundle.spec.intent.rollback
    if rollback is None:
        return
    try:
        found = await client.get(BUNDLE, rollback.restores.name, bundle.metadata.namespace)
    except NotFound:
        found = None
    restored = Bundle.model_validate(found) if found is not None else None
    if problems := rollback_problems(bundle, restored, pipeline=pipeline):
        raise InvalidSpec(problems)
