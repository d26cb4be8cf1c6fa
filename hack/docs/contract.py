"""Write the table of what the contract suite covers: `python -m hack.docs.contract docs/contract.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.local.contract.coverage import AREAS, OUTCOMES, VERBS, Cell, coverage

__all__ = ["page"]

INTRODUCTION = """\
# The contract with a real API server

Generated from the cases themselves by `make docs`.

The cases of `tests/local/contract` run on the local plane (`make test-plane`) and on a real kube-apiserver
(`make test-kube`). Every answer that a case gets is compared, whole, with what the real server answered when
`make contract-record` was run last. The differences that stay are in [local-plane-limits.md](local-plane-limits.md).
"""


class _Collected:
    """Keeps what pytest collects."""

    items: list[pytest.Item]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.items = session.items


def page(cells: Mapping[Cell, list[str]]) -> str:
    """Return the whole page."""
    return INTRODUCTION + "".join(_sections(cells))


def _sections(cells: Mapping[Cell, list[str]]) -> Iterator[str]:
    for area in AREAS:
        verbs = [verb for verb in VERBS if any(Cell(area, verb, outcome) in cells for outcome in OUTCOMES)]
        if not verbs:
            continue
        yield f"\n## {area}\n\n| | {' | '.join(OUTCOMES)} |\n|---|{'---|' * len(OUTCOMES)}\n"
        for verb in verbs:
            row = [_links(cells.get(Cell(area, verb, outcome), ())) for outcome in OUTCOMES]
            yield f"| **{verb}** | {' | '.join(row)} |\n"


def _links(tests: Iterable[str]) -> str:
    return "<br>".join(_link(*test.split("::")) for test in tests)


def _link(file: str, function: str) -> str:
    return f"[{function.removeprefix('test_').replace('_', ' ')}](../{file})"


def main() -> None:
    collected = _Collected()
    pytest.main(["--collect-only", "-qqq", "-n0", "tests/local/contract"], plugins=[collected])
    Path(sys.argv[1]).write_text(page(coverage(collected.items)))


if __name__ == "__main__":
    main()
