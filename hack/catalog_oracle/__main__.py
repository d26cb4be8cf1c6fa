"""Compile the fixtures with Commodore.

    python -m hack.catalog_oracle record [CASE...]   write what Commodore gives into `expected/`
    python -m hack.catalog_oracle check [CASE...]    compare it with what is there

A name may be a pattern: `record 'merge-*'`. Without a name, all cases are compiled, two at once.
"""

from __future__ import annotations

import argparse
import fnmatch
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hack.catalog_oracle.assets import Commodore, install
from hack.catalog_oracle.compilation import compile_case
from hack.catalog_oracle.fixtures import Case, Catalog, cases
from hack.kube.assets import AssetsMissing

_AT_ONCE = 2


def main() -> int:
    """Record or check, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m hack.catalog_oracle", description=__doc__.partition("\n")[0])
    parser.add_argument("verb", choices=["record", "check"])
    parser.add_argument("cases", nargs="*", metavar="CASE", help="name or pattern; all if there is none")
    chosen = parser.parse_args()
    try:
        commodore = install()
    except AssetsMissing as error:
        print(error, file=sys.stderr)
        return 1
    differing = 0
    for case, catalogs in _compiled(commodore, _chosen(chosen.cases)):
        if chosen.verb == "record":
            _record(case, catalogs)
            print(f"{case.name}: {_summary(catalogs)}")
            continue
        differences = list(_differences(case, catalogs))
        differing += bool(differences)
        print("\n".join([f"{case.name}: {'differs' if differences else 'same'}", *differences]))
    return 1 if differing else 0


def _chosen(patterns: Sequence[str]) -> list[Case]:
    chosen = [case for case in cases() if any(fnmatch.fnmatch(case.name, pattern) for pattern in patterns or ["*"])]
    if not chosen:
        sys.exit(f"no case is named {' or '.join(patterns)}")
    return chosen


def _compiled(commodore: Commodore, chosen: Sequence[Case]) -> Iterator[tuple[Case, dict[str, Catalog]]]:
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda case: compile_case(commodore, case, Path(directory) / case.name), chosen)
        yield from zip(chosen, found, strict=True)


def _record(case: Case, catalogs: dict[str, Catalog]) -> None:
    shutil.rmtree(case.directory / "expected", ignore_errors=True)
    for cluster, catalog in catalogs.items():
        directory = case.directory / "expected" / cluster
        directory.mkdir(parents=True)
        if catalog.refused is not None:
            (directory / "refused.txt").write_text(catalog.refused)
        for name, content in catalog.files.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(content)


def _differences(case: Case, catalogs: dict[str, Catalog]) -> Iterator[str]:
    for cluster, now in catalogs.items():
        then = case.recorded(cluster, url="${ROOT}")
        if then is None:
            yield f"  {cluster}: not recorded"
        elif then.refused != now.refused:
            yield f"  {cluster}: {_why(then)}, now {_why(now)}"
        else:
            for path in sorted(then.files.keys() | now.files.keys()):
                if then.files.get(path) != now.files.get(path):
                    yield f"  {cluster}: {path}"


def _why(catalog: Catalog) -> str:
    return f"refused ({catalog.refused.strip()})" if catalog.refused is not None else f"{len(catalog.files)} files"


def _summary(catalogs: dict[str, Catalog]) -> str:
    return ", ".join(f"{cluster} {_why(catalog)}" for cluster, catalog in catalogs.items())


if __name__ == "__main__":
    sys.exit(main())
