"""The command that this package adds to `kardinal`, declared here so that `kardinal --help` imports nothing of it.

render   `kardinal render`
kinds    the checks of `kardinal lint`, by the entry point `carto.run` of the group `kardinal.kinds`
"""

from __future__ import annotations

from kardinal.cli.lazy import LazyCommand

__all__ = ["RENDER"]

RENDER = LazyCommand(
    "render",
    "kardinal_supplychain.cli.render:render",
    "Show what a supply chain would stamp for a Workload, and need no cluster.",
)
