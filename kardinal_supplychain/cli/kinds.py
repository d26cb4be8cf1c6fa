"""The declaration of the kinds of carto.run to `kardinal lint`, `get` and `explain`; it imports nothing of them."""

from __future__ import annotations

from kardinal.cli.kinds import KindDeclaration
from kardinal.cli.lazy import LazyCommand

__all__ = ["KINDS"]

KINDS = KindDeclaration(
    linted="kardinal_supplychain.cli.checks:LINTED",
    lists=(
        LazyCommand(
            "workloads",
            "kardinal_supplychain.cli.lists:workloads",
            "List Workloads with the supply chain that each matches.",
        ),
        LazyCommand(
            "deliverables",
            "kardinal_supplychain.cli.lists:deliverables",
            "List Deliverables with the delivery that each matches.",
        ),
        LazyCommand(
            "runnables",
            "kardinal_supplychain.cli.lists:runnables",
            "List Runnables with the template of their runs.",
        ),
    ),
    explained={
        "workload": "kardinal_supplychain.cli.explain:explain_workload",
        "deliverable": "kardinal_supplychain.cli.explain:explain_deliverable",
    },
)
