"""The CustomResourceDefinitions of promotion, generated from the models; `make crds` writes them to `crds/`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from kardinal.catalog.kinds import CatalogCluster, CatalogTenant
from kardinal.models.base import Resource
from kardinal.models.crds import AGE, MESSAGE, READY, REASON, Column, DefinedKind, definition, write_definitions
from kardinal.promotion.api.approval import Approval
from kardinal.promotion.api.bundle import Bundle
from kardinal.promotion.api.graph import Graph, GraphRevision
from kardinal.promotion.api.metric_check import MetricCheck
from kardinal.promotion.api.pipeline import Pipeline
from kardinal.promotion.api.policy_gate import PolicyGate
from kardinal.promotion.api.promotion_step import PromotionStep
from kardinal.promotion.api.subscription import Subscription

__all__ = ["definitions"]


def _kind(model: type[Resource], short_name: str, columns: tuple[Column, ...]) -> DefinedKind:
    return DefinedKind(model=model, short_name=short_name, columns=columns, categories=("kardinal",))


_KINDS = (
    _kind(
        Pipeline,
        "pl",
        (
            Column("Repository", ".spec.git.url"),
            Column("Branch", ".spec.git.branch", wide=True),
            READY,
            REASON,
            Column("Writable", '.status.conditions[?(@.type=="RepositoryReady")].status'),
            MESSAGE,
            Column("Writable-Message", '.status.conditions[?(@.type=="RepositoryReady")].message', wide=True),
            AGE,
        ),
    ),
    _kind(
        Bundle,
        "bd",
        (
            Column("Pipeline", ".status.pipeline"),
            Column("Version", ".status.version"),
            Column("Phase", ".status.phase"),
            READY,
            MESSAGE,
            AGE,
        ),
    ),
    _kind(
        PromotionStep,
        "ps",
        (
            Column("Pipeline", ".spec.pipeline"),
            Column("Environment", ".spec.environment"),
            Column("Bundle", ".spec.bundleRef"),
            Column("State", ".status.state"),
            Column("Message", ".status.message"),
            Column("Pull-Request", ".status.prURL", wide=True),
            AGE,
        ),
    ),
    _kind(
        PolicyGate,
        "pg",
        (
            Column("Scope", ".spec.origin.scope"),
            Column("Environment", ".spec.origin.environment"),
            Column("Ready", ".status.ready", "boolean"),
            Column("Reason", ".status.reason"),
            Column("Valid", '.status.conditions[?(@.type=="Valid")].status'),
            Column("Evaluated", ".status.lastEvaluatedAt", "date"),
            Column("Expression", ".spec.expression", wide=True),
            Column("Message", '.status.conditions[?(@.type=="Valid")].message', wide=True),
            AGE,
        ),
    ),
    _kind(
        Approval,
        "ap",
        (
            Column("Bundle", ".spec.bundle"),
            Column("Environment", ".spec.environment"),
            Column("Gate", ".spec.gate"),
            Column("External", ".spec.external.name"),
            Column("Approver", ".spec.approver"),
            Column("Expires", ".spec.expiresAt", "date"),
            Column("Reason", ".spec.reason", wide=True),
            AGE,
        ),
    ),
    _kind(MetricCheck, "mc", (Column("Provider", ".spec.provider.type"), READY, REASON, MESSAGE, AGE)),
    _kind(
        Subscription,
        "sub",
        (Column("Pipeline", ".spec.pipeline"), Column("Source", ".spec.source.type"), READY, REASON, MESSAGE, AGE),
    ),
    _kind(
        CatalogTenant,
        "",
        (
            Column("Display-Name", ".spec.displayName"),
            Column("Global", ".spec.global.url", wide=True),
            Column("Inventory", ".spec.inventory.url"),
            AGE,
        ),
    ),
    _kind(
        CatalogCluster,
        "",
        (
            Column("Display-Name", ".spec.displayName"),
            Column("Tenant", ".spec.tenant"),
            Column("Distribution", ".spec.facts.distribution"),
            Column("Cloud", ".spec.facts.cloud"),
            AGE,
        ),
    ),
    _kind(
        Graph,
        "gr",
        (
            READY,
            REASON,
            MESSAGE,
            AGE,
        ),
    ),
    _kind(GraphRevision, "", (Column("Generation", ".spec.generation", "integer"), AGE)),
)


def definitions() -> list[dict[str, Any]]:
    """Return one CustomResourceDefinition per kind, ready to be applied."""
    return list(map(definition, _KINDS))


if __name__ == "__main__":
    for written in write_definitions(definitions(), Path(sys.argv[1] if len(sys.argv) > 1 else "crds")):
        sys.stdout.write(f"{written}\n")
