"""Write what the local plane does otherwise: `python -m hack.docs.limits docs/local-plane-limits.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hack.kube.assets import KUBERNETES
from hack.kube.programs import published_flags
from tests.local.contract.ledger import Row, load_ledger

__all__ = ["page"]

INTRODUCTION = f"""\
# Where the local plane differs from a real API server

Generated from `tests/local/contract/ledger.yaml` by `make docs`.

The local plane is held to kube-apiserver {KUBERNETES} by [one suite of tests](contract.md) that both pass. What it does
otherwise, on purpose, is below; each row names the test that asserts both behaviours, and fails when either changes.
"""

THE_REAL_SERVER = """
## The real server

"Real" means the programs that `make assets` builds, with these flags that are no defaults:

"""


def page(rows: Sequence[Row], flags: Mapping[str, Iterable[str]]) -> str:
    """Return the whole page."""
    text = INTRODUCTION
    for item in dict.fromkeys(row.item for row in rows):
        text += f"\n## {item[0].upper()}{item[1:]}\n" + "".join(_entry(row) for row in rows if row.item == item)
    listed = "".join(f"- {program}: {', '.join(f'`{flag}`' for flag in given)}\n" for program, given in flags.items())
    return text + THE_REAL_SERVER + listed


def _entry(row: Row) -> str:
    file, _, test = row.test.partition("::")
    return f"\n- **{row.what}** {row.why} Who notices: {row.who} (`{row.id}`, [{test}](../{file}))\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(load_ledger(), published_flags()))
