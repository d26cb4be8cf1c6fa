"""Write the page of all states from `kardinal.promotion.views.states`: `python -m hack.docs.states docs/states.md`."""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

from kardinal.promotion.views.states import STATES

__all__ = ["reference"]

INTRODUCTION = """\
# States

Generated from `kardinal/promotion/views/states.py` by `make docs`: every state of a promotion and its parts, what it
means, and what to type next. `kardinal status` shows them, and `kardinal watch` follows them.
"""

TITLES = {
    "Bundle": "`status.phase` of a Bundle",
    "PromotionStep": "`status.state` of a PromotionStep, the promotion of a Bundle into one environment",
    "Environment": "An environment in which the Bundle has no PromotionStep, as the commands show it",
    "Health": "What is Verified and no longer healthy, as the commands show it beside that",
    "Gate": "The answer of a gate before an environment, as the commands show it",
}


def reference() -> str:
    """Return the page `docs/states.md`."""
    parts = [INTRODUCTION]
    for kind, states in groupby(STATES.values(), key=lambda state: state.kind):
        parts.append(f"\n## {kind}\n\n{TITLES[kind]}.\n\n| state | meaning | next |\n|---|---|---|\n")
        parts += [f"| {each.name} | {each.sentence} | {each.command and f'`{each.command}`'} |\n" for each in states]
    return "".join(parts)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference())
