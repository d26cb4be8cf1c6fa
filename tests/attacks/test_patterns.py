"""Text that is slow to compare with the patterns of the programs, which hold the interpreter meanwhile.

Each of these took minutes, so the time limit of a test is the bound. `tests/house/test_pattern_costs.py` looks at every
pattern.
"""

from __future__ import annotations

import pytest

from kardinal.edits.kustomize.manifests import Mapping
from kardinal.edits.kustomize.references import remote_references
from kardinal.promotion.kinds import PIPELINE
from tests.bundles.reading import REPOSITORY, condition, reason
from tests.bundles.scripted_agent import agent, controller
from tests.support.names import DEV
from tests.support.objects import environment, pipeline
from tests.support.world import World

__all__ = ["agent", "controller"]


@pytest.mark.usefixtures("controller")
async def test_a_placeholder_that_does_not_end_stops_no_one(world: World) -> None:
    made = pipeline(REPOSITORY, environments=[environment(DEV)])
    made["spec"]["git"]["message"] = {"body": "${" + " " * 4094}
    await world.apply(made)
    bad = await world.wait_for(PIPELINE, "my-app", lambda obj: reason(obj) is not None)
    ready = condition(bad)
    assert ready is not None
    assert "spec.git.message.body: a placeholder that begins with ${ does not end with }" in ready["message"]


def test_a_long_word_in_a_kustomization_is_looked_through_once() -> None:
    kustomization: Mapping = {"replacements": ["a" * (1 << 20), "1https://elsewhere"]}
    assert list(remote_references(kustomization)) == ["1https://elsewhere"]
