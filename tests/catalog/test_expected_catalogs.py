"""The cases that Commodore has compiled: kardinal gives the same bytes, or what the case says instead."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hack.catalog_oracle.fixtures import PUBLIC_URL, Case, Repositories, cases, make_repositories
from kardinal.catalog.compile import compile_catalog
from kardinal.catalog.contracts import Engine
from kardinal.catalog.errors import CatalogError
from kardinal.catalog.inventory import read_inventory
from kardinal.catalog.lock import LOCK_FILE, Locks
from kardinal.cli.catalog.sources import caller_sources
from tests.catalog.conftest import StartEngine
from tests.support.renderers import install, needs

UNSUPPORTED = {"kustomize-remote": "bases in other repositories are not fetched"}
"""Cases that kardinal does not compile as expected."""
RENDERED = ("helm", "helm-refused", "kustomize", "kustomize-remote")
"""Cases whose components need helm or kustomize."""


def marks(case: Case) -> list[pytest.MarkDecorator]:
    """Return the marks of a case."""
    reason = UNSUPPORTED.get(case.name)
    return [pytest.mark.xfail(reason=reason, strict=True)] if reason else []


CASES = [pytest.param(case, id=case.name, marks=marks(case)) for case in cases()]


@pytest.mark.parametrize("case", CASES)
def test_catalog_has_the_expected_bytes(
    case: Case, tmp_path: Path, start_engine: StartEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "repositories"
    root.mkdir()
    repositories = make_repositories(case, root, url=PUBLIC_URL if names_public_url(case) else None)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(repositories.git_config))
    if case.name in RENDERED:
        programs = tmp_path / "bin"
        install(programs)
        needs(programs, "helm", "kustomize")
        monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    cache = tmp_path / "cache"
    with ThreadPoolExecutor(1) as pool:  # as a command, which has an event loop of its own
        found = pool.submit(asyncio.run, differences(case, repositories, cache, start_engine(cache / "trees"))).result()
    assert found == {}


async def differences(case: Case, repositories: Repositories, cache: Path, engine: Engine) -> dict[str, str]:
    """Return what is not as expected, by cluster."""
    found: dict[str, str] = {}
    documents = repositories.documents()
    async with caller_sources(cache, offline=False) as sources:
        for name in case.clusters():
            own = [body for body in documents if body["kind"] != "CatalogCluster" or body["metadata"]["name"] == name]
            expected = case.expected(name, url=repositories.url)
            assert expected is not None
            try:
                cluster = read_inventory(own)[name]
                compiled = await compile_catalog(cluster, sources=sources, engine=engine, locks=Locks())
            except CatalogError as error:
                if expected.refused is None:
                    found[name] = str(error)
                continue
            if expected.refused is not None:
                found[name] = f"not refused: {expected.refused}"
            elif files := difference(dict(compiled.files), dict(expected.files)):
                found[name] = files
    return found


def names_public_url(case: Case) -> bool:
    """Return whether files of a case name the URL of the repositories as it is in public."""
    files = (path for path in (case.directory / "repositories").rglob("*") if path.is_file())
    return any(PUBLIC_URL.removeprefix("https://").encode() in path.read_bytes() for path in files)


def difference(found: dict[str, bytes], expected: dict[str, bytes]) -> str:
    """Return the files that differ, apart from the lock and from dotfiles, which a compilation leaves alone."""
    found.pop(LOCK_FILE)
    kept = {path for path in expected if path.rpartition("/")[2].startswith(".")}
    names = sorted(set(found) | set(expected) - kept)
    return ", ".join(name for name in names if found.get(name) != expected.get(name))
