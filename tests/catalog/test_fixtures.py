"""The cases that Commodore and kardinal compile: complete, and the same repositories on every machine."""

from __future__ import annotations

from pathlib import Path

import pygit2
import pytest

from hack.catalog_oracle.fixtures import PUBLIC_URL, Case, cases, make_repositories

CASES = [pytest.param(case, id=case.name) for case in cases()]


@pytest.mark.parametrize("case", CASES)
def test_every_cluster_has_an_expected_catalog(case: Case) -> None:
    found = {cluster: case.expected(cluster, url=PUBLIC_URL) for cluster in case.clusters()}
    assert found
    assert all(found.values())


def test_same_files_give_the_same_commits(tmp_path: Path) -> None:
    (case,) = (case for case in cases() if case.name == "hierarchy")
    made = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        made.append(make_repositories(case, tmp_path / name, url=PUBLIC_URL))

    assert made[0].commits == made[1].commits
    web = pygit2.Repository(str(tmp_path / "a" / "web.git"))
    assert str(web.head.target) == made[0].commits["web"]
    assert PUBLIC_URL in made[0].inventory.read_text()
