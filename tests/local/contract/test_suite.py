"""The suite is in order: no recording without its case, no case without its place, no row without its proof."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.docs import contract, limits
from hack.kube.assets import KUBERNETES
from hack.kube.programs import published_flags
from tests.local.contract.coverage import cell_of, coverage
from tests.local.contract.ledger import LIMIT, load_ledger
from tests.local.contract.recordings import ROOM, Recording, all_recordings
from tests.local.contract.wire import Api

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture
def cases(request: pytest.FixtureRequest) -> list[pytest.Function]:
    """Every test of this room; a run of a part of it cannot tell what is missing."""
    config = request.config
    if config.getoption("keyword") or config.getoption("markexpr") or any("::" in one for one in config.args):
        pytest.skip("only a part of the suite was collected")
    here = [one for one in request.session.items if isinstance(one, pytest.Function) and one.path.parent == ROOM.parent]
    if {one.path for one in here} != set(ROOM.parent.glob("test_*.py")):
        pytest.skip("only a part of the suite was collected")
    return here


def _recorded(cases: list[pytest.Function]) -> list[pytest.Function]:
    """The cases that may have a recording; not each asks for anything on tape."""
    return [case for case in cases if "api" in case.fixturenames and cell_of(case)]


def test_every_recording_has_its_case(cases: list[pytest.Function]) -> None:
    expected = {Recording.path(case.path.stem.removeprefix("test_"), case.name) for case in _recorded(cases)}
    stale = [str(path.relative_to(ROOM)) for path, _ in all_recordings() if path not in expected]
    assert not stale, f"remove the recordings of tests that are gone: {', '.join(stale)}"
    assert len(expected) == len(_recorded(cases)), "two cases share one recording"


def test_every_row_of_the_ledger_has_a_case_that_asserts_both_sides(cases: list[pytest.Function]) -> None:
    rows = load_ledger()
    marked = {
        (mark.args[0], f"{case.nodeid.partition('[')[0]}") for case in cases for mark in case.iter_markers("differs")
    }
    assert {(row.id, row.test) for row in rows} == marked
    assert len(rows) == len({row.id for row in rows}) <= LIMIT


@pytest.mark.covers("discovery", "discover", "success")
async def test_the_version_is_the_one_that_was_built_and_recorded(api: Api) -> None:
    version = (await api.silent.get("/version")).body
    major, minor, _ = KUBERNETES.split(".")
    assert (version["major"], version["minor"]) == (major, minor)
    assert version["gitVersion"].removesuffix("+kardinal") == f"v{KUBERNETES}"
    assert {recording.server for _, recording in all_recordings()} == {f"v{KUBERNETES}"}


def test_the_table_of_cases_is_fresh(cases: list[pytest.Function]) -> None:
    assert (DOCS / "contract.md").read_text() == contract.page(coverage(cases)), "run `make docs`"


def test_the_page_of_known_differences_is_fresh() -> None:
    page = limits.page(load_ledger(), published_flags())
    assert (DOCS / "local-plane-limits.md").read_text() == page, "run `make docs`"
