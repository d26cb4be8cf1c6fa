"""`kardinal init --mode graph`: print the Graph of a Bundle, for a person to change and to create."""

from __future__ import annotations

from datetime import UTC, datetime

from kardinal.cli.errors import CommandError
from kardinal.cli.output import print_value
from kardinal.cli.session import Session, cluster_command
from kardinal.extensions import load_extensions
from kardinal.promotion.api import Bundle, Pipeline, PolicyGate
from kardinal.promotion.api.names import LABEL_BUNDLE
from kardinal.promotion.kinds import POLICY_GATE
from kardinal.promotion.policy.matching import GateTemplate, collect
from kardinal.promotion.translation import Features, translate
from kardinal.promotion.translation.authored import exported

__all__ = ["print_graph"]

_CREATE = "Create a Bundle with spec.intent.graph: manual: kubectl create -f FILE"


@cluster_command
async def print_graph(
    session: Session, *, pipeline: str, bundle: str | None, account: str, policy_namespace: str, output: str
) -> None:
    """Print the Graph that the controller would make of a Pipeline, as a person writes it for a Bundle."""
    found = await session.pipeline(pipeline)
    promoted = await _manual_bundle(session, pipeline, bundle)
    graph = translate(
        found,
        promoted,
        await _gates(session, found, policy_namespace),
        # What the controller does not allow, it says itself.
        features=Features(
            registry=load_extensions().registry, allow_local_repositories=True, allow_insecure_git=("*",)
        ),
        now=datetime.now(UTC),
    )
    print_value(exported(graph, account=account), output)


async def _manual_bundle(session: Session, pipeline: str, name: str | None) -> Bundle:
    """Return the Bundle called `name`, else the newest one that waits for a Graph; its Graph must be a person's."""
    if name is not None:
        chosen = await session.bundle(pipeline, name)
        if chosen.spec.intent.graph != "manual":
            raise CommandError(f"Bundle {name} gets the Graph of Pipeline {pipeline}", remedy=_CREATE)
        return chosen
    waiting = (
        each
        for each in await session.bundles(pipeline)
        if each.spec.intent.graph == "manual" and each.status.graph_ref is None
    )
    first = next(waiting, None)
    if first is None:
        raise CommandError(f"no Bundle of {pipeline} waits for a Graph", remedy=_CREATE)
    return first


async def _gates(session: Session, pipeline: Pipeline, policy_namespace: str) -> tuple[GateTemplate, ...]:
    found: list[PolicyGate] = []
    for namespace in sorted({session.namespace, policy_namespace}):
        templates = await session.client.list(POLICY_GATE, namespace, labels=f"!{LABEL_BUNDLE}")
        found += map(PolicyGate.model_validate, templates.items)
    return collect(
        found,
        pipeline=pipeline.metadata.name,
        namespace=session.namespace,
        policy_namespaces=(policy_namespace,),
    )
