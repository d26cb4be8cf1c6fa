"""The commands and kinds that this package adds to `kardinal`.

Here, and in `kinds`, they are only declared, so that no help imports a command.

render   `kardinal render`
kinds    the kinds that `kardinal lint`, `get` and `explain` learn
checks   the checks of `kardinal lint`
lists    `kardinal get workloads`, `deliverables` and `runnables`
explain  `kardinal explain workload/NAME` and `deliverable/NAME`
"""

from __future__ import annotations

from kardinal.cli.lazy import LazyCommand

__all__ = ["RENDER"]

RENDER = LazyCommand(
    "render",
    "kardinal_supplychain.cli.render:render",
    "Show what a supply chain would stamp for a Workload, and need no cluster.",
)
