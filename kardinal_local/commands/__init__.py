"""The commands that this package adds to `kardinal`, as entry points of the group `kardinal.commands`.

demo     `kardinal demo`
local    `kardinal local up`, `down`, `status` and `export`
sample   `kardinal sample`

Here they are only declared, so that `kardinal --help` imports none of them.
"""

from __future__ import annotations

from kardinal.cli.lazy import LazyCommand

__all__ = ["DEMO", "LOCAL", "SAMPLE"]

DEMO = LazyCommand(
    "demo",
    "kardinal_local.commands.demo:demo",
    "Watch a Bundle go dev, staging, prod: commits, a gate, a pull request and health, in under a minute.",
)
SAMPLE = LazyCommand(
    "sample",
    "kardinal_local.commands.sample:sample",
    "Make a GitOps repository with a Pipeline and gates for it, to try things with.",
)
LOCAL = LazyCommand(
    "local",
    "kardinal_local.commands.local:local",
    "Run kardinal on this machine, without a cluster. For trying, testing and single-node use.",
)
