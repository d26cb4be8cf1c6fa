"""Graphs that people write for a Bundle with `intent.graph: manual`."""

from __future__ import annotations

from kardinal.objects import JsonObject
from kardinal.promotion.api import Bundle, Pipeline, PolicyGate
from kardinal.promotion.kinds import BUNDLE, PIPELINE, POLICY_GATE
from kardinal.promotion.policy.matching import collect
from kardinal.promotion.translation import Features, translate
from kardinal.promotion.translation.authored import exported
from tests.support.accounts import make_account, rule
from tests.support.names import POLICIES, TEAM
from tests.support.objects import bundle
from tests.support.registry import REGISTRY
from tests.support.repository import APPLICATION
from tests.support.world import World

__all__ = ["PROMOTER", "authored_graph", "make_promoter", "manual_bundle"]

PROMOTER = "promoter"
"""The account that such Graphs name."""


def manual_bundle(name: str = "app-1", *, tag: str = "1.1.0") -> JsonObject:
    return bundle(name, tag=tag, intent={"graph": "manual"})


async def make_promoter(world: World) -> None:
    """Make the account, which may promote every Bundle of its namespace."""
    await make_account(world, PROMOTER, rule("promote", on="bundles", group="kardinal.io"))


async def authored_graph(world: World, name: str = "app-1") -> JsonObject:
    """Return the Graph that `kardinal init --mode graph` prints for a Bundle."""
    gates = await world.objects(POLICY_GATE, labels="!kardinal.io/bundle")
    graph = translate(
        Pipeline.model_validate(await world.get(PIPELINE, APPLICATION)),
        Bundle.model_validate(await world.get(BUNDLE, name)),
        collect(
            map(PolicyGate.model_validate, gates),
            pipeline=APPLICATION,
            namespace=TEAM,
            policy_namespaces=(POLICIES,),
        ),
        features=Features(registry=REGISTRY, allow_local_repositories=True),
        now=world.clock.now(),
    )
    return exported(graph, account=PROMOTER)
