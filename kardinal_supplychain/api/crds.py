"""The CustomResourceDefinitions of carto.run, generated from the models; `make crds` writes `crds/supplychain/`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from kardinal.models.crds import AGE, READY, REASON, Column, DefinedKind, definition, write_definitions
from kardinal_supplychain.api.blueprints import ClusterDelivery, ClusterSupplyChain
from kardinal_supplychain.api.owners import Deliverable, Workload
from kardinal_supplychain.api.runs import ClusterRunTemplate, RunnableObject
from kardinal_supplychain.api.templates import (
    ClusterConfigTemplate,
    ClusterDeploymentTemplate,
    ClusterImageTemplate,
    ClusterSourceTemplate,
    ClusterTemplate,
)

__all__ = ["definitions"]

_SOURCE = Column("Source", ".spec.source['image','git.url']")
_ALL = ("all",)

_KINDS = (
    DefinedKind(
        model=Workload,
        short_name="wld",
        columns=(_SOURCE, Column("SupplyChain", ".status.supplyChainRef.name"), READY, REASON, AGE),
        categories=_ALL,
    ),
    DefinedKind(
        model=Deliverable,
        short_name="dlv",
        columns=(_SOURCE, Column("Delivery", ".status.deliveryRef.name"), READY, REASON, AGE),
        categories=_ALL,
    ),
    DefinedKind(model=ClusterSupplyChain, short_name="csc", columns=(READY, REASON, AGE)),
    DefinedKind(model=ClusterDelivery, short_name="cd", columns=(READY, REASON, AGE)),
    DefinedKind(model=ClusterSourceTemplate, short_name="cst"),
    DefinedKind(model=ClusterImageTemplate, short_name="cit"),
    DefinedKind(model=ClusterConfigTemplate, short_name="cct"),
    DefinedKind(model=ClusterDeploymentTemplate, short_name="cdt"),
    DefinedKind(model=ClusterTemplate, short_name="ct"),
    DefinedKind(model=ClusterRunTemplate, short_name="crt"),
    DefinedKind(model=RunnableObject, short_name="run", columns=(READY, REASON, AGE)),
)


def definitions() -> list[dict[str, Any]]:
    """Return one CustomResourceDefinition per kind, ready to be applied."""
    return list(map(definition, _KINDS))


if __name__ == "__main__":
    for written in write_definitions(definitions(), Path(sys.argv[1] if len(sys.argv) > 1 else "crds/supplychain")):
        sys.stdout.write(f"{written}\n")
