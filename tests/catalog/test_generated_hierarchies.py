"""Generated hierarchies, compiled by Commodore and by kardinal: the same bytes, or both refuse.

make test-catalog-oracle                                                              # 300 of them
HIERARCHIES=20 FIRST=300 pytest tests/catalog/test_generated_hierarchies.py           # others
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hack.catalog_oracle.assets import Commodore, install
from hack.catalog_oracle.compilation import compile_case
from hack.catalog_oracle.fixtures import Case, Catalog, make_repositories
from hack.catalog_oracle.hierarchies import as_case, hierarchy
from kardinal.catalog.compile import compile_catalog
from kardinal.catalog.errors import CatalogError
from kardinal.catalog.inventory import read_inventory
from kardinal.catalog.lock import LOCK_FILE, Locks
from kardinal.cli.catalog.sources import caller_sources
from tests.catalog.conftest import StartEngine

COUNT = int(os.environ.get("HIERARCHIES", "0"))
FIRST = int(os.environ.get("FIRST", "0"))


@pytest.fixture(scope="session")
def commodore() -> Commodore:
    return install()


def test_a_seed_gives_one_hierarchy() -> None:
    assert hierarchy(7) == hierarchy(7)
    assert hierarchy(7) != hierarchy(8)


@pytest.mark.skipif(COUNT == 0, reason="make test-catalog-oracle runs it: Commodore takes seconds for each")
@pytest.mark.parametrize("seed", range(FIRST, FIRST + max(COUNT, 1)))
async def test_catalog_of_a_hierarchy_is_that_of_commodore(
    seed: int, tmp_path: Path, commodore: Commodore, start_engine: StartEngine
) -> None:
    case = as_case(seed, tmp_path / "case")
    theirs = compile_case(commodore, case, tmp_path / "commodore")["c-one"]
    ours = await compiled(case, tmp_path, start_engine)

    assert (theirs.refused is None) == (ours.refused is None), f"{theirs.refused or 'a catalog'}\n{ours.refused}"
    assert {path: content.decode() for path, content in ours.files.items()} == {
        path: content.decode() for path, content in theirs.files.items()
    }


async def compiled(case: Case, directory: Path, start_engine: StartEngine) -> Catalog:
    root = directory / "repositories"
    root.mkdir()
    repositories = make_repositories(case, root)
    cluster = read_inventory(repositories.documents())["c-one"]
    engine = start_engine(directory / "cache" / "trees")
    async with caller_sources(directory / "cache", offline=False) as sources:
        try:
            found = await compile_catalog(cluster, sources=sources, engine=engine, locks=Locks())
        except CatalogError as error:
            return Catalog(refused=str(error))
    return Catalog(files={path: content for path, content in found.files.items() if path != LOCK_FILE})
