"""Names that belong to a run of the tests: where a team's objects live, where policies do, and what is promoted to.

Each ends in the id of the run. So what a run leaves on a cluster can be told from everything else there, and a program
that takes `default`, `prod` or `platform-policies` for granted does not get far. On a real server the id is of this run
alone. On local planes, of which every test has its own, all runs share one: which faults are injected into a program
depends on the names it uses, and a test must meet the same faults every time.
"""

from __future__ import annotations

import os
import secrets
import sys

__all__ = ["DEV", "EU", "POLICIES", "PROD", "RUN", "STAGING", "TEAM", "US", "of_run"]

_VARIABLE = "KARDINAL_TEST_RUN"


def _id_of_run() -> str:
    # Test modules are made of these names, so they are needed before pytest has understood its options.
    if any(argument.startswith("--target") for argument in sys.argv):
        # Workers have no such argument; they inherit what is chosen here.
        os.environ.setdefault(_VARIABLE, secrets.token_hex(8)[:5])
    return os.environ.get(_VARIABLE, "local")


RUN = _id_of_run()
"""The id of this run."""


def of_run(name: str) -> str:
    """Return a name as this run spells it."""
    return f"{name}-{RUN}"


TEAM = of_run("team")
"""The namespace of Pipelines and Bundles."""

POLICIES = of_run("platform-policies")
"""The namespace of the organisation's PolicyGates."""

DEV = of_run("dev")
STAGING = of_run("staging")
PROD = of_run("prod")
EU = of_run("eu")
US = of_run("us")
