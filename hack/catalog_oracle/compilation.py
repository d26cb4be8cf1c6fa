"""Run `commodore catalog compile`, and read the catalog that it leaves in its directory."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from hack.catalog_oracle.assets import Commodore
from hack.catalog_oracle.fixtures import PUBLIC_URL, Case, Catalog, make_repositories
from hack.catalog_oracle.lieutenant import answers, serving

__all__ = ["compile_case", "compile_cluster"]

_TIMEOUT = 300.0
_CHANGING = {
    rb"http://127\.0\.0\.1:\d+": b"${LIEUTENANT}",
    rb"/\S+/tmp\w+\.kapitan": b"${KAPITAN}",
    rb"/lib/python3\.\d+/": b"/lib/python/",
}
"""Patterns of what is another in each run, and the placeholders for it."""


def compile_case(commodore: Commodore, case: Case, directory: Path) -> dict[str, Catalog]:
    """Return the catalogs of a case by cluster; `${ROOT}` stands for the URL of its repositories."""
    root = directory / "repositories"
    root.mkdir(parents=True)
    repositories = make_repositories(case, root, url=PUBLIC_URL, commodore=True)
    catalogs = {}
    with serving(answers(repositories.documents())) as lieutenant:
        for cluster in case.clusters():
            work = directory / cluster
            found = compile_cluster(commodore, cluster, work, lieutenant=lieutenant, git_config=repositories.git_config)
            names = {str(work): "${WORK}", root.as_uri(): "${ROOT}", str(root): "${ROOT}", PUBLIC_URL: "${ROOT}"}
            catalogs[cluster] = _portable(found, {str(commodore.python.parents[1]): "${COMMODORE}"} | names)
    return catalogs


def compile_cluster(commodore: Commodore, cluster: str, work: Path, *, lieutenant: str, git_config: Path) -> Catalog:
    """Compile the catalog of a cluster in the directory `work`, which is made."""
    work.mkdir(parents=True)
    home = work.parent / "home"
    home.mkdir(exist_ok=True)
    # Programs that Kapitan runs see HOME and PATH alone.
    shutil.copyfile(git_config, home / ".gitconfig")
    command = [commodore.python, "-m", "commodore", "-d", work, "catalog", "compile", cluster]
    done = subprocess.run(
        [*map(str, command), "--api-url", lieutenant, "--api-token", "none", "--processes", "1"],
        cwd=work,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        check=False,
        env={
            "HOME": str(home),
            "PATH": os.pathsep.join([*map(str, commodore.programs), "/usr/local/bin", "/usr/bin", "/bin"]),
            "LANG": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "Commodore",
            "GIT_AUTHOR_EMAIL": "commodore@example.com",
            "GIT_COMMITTER_NAME": "Commodore",
            "GIT_COMMITTER_EMAIL": "commodore@example.com",
        },
    )
    if done.returncode != 0:
        return Catalog(refused=_reason(done))
    catalog = work / "catalog"
    return Catalog(
        files={
            path.relative_to(catalog).as_posix(): path.read_bytes()
            for part in ("manifests", "refs")
            for path in sorted((catalog / part).rglob("*"))
            if path.is_file()
        }
    )


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """Return the exit code and the error: what follows `Error:`, or the last line of a traceback."""
    text = f"{done.stdout}\n{done.stderr}"
    found = done.stderr.rpartition("Error: ")
    if found[1] and "Traceback" not in found[2]:
        reason = found[2]
    else:
        lines = [line for line in text.splitlines() if line.strip() and "For further information" not in line]
        reason = lines[-1] if lines else ""
    return f"exit code {done.returncode}\n{reason.strip()}\n"


def _portable(catalog: Catalog, names: Mapping[str, str]) -> Catalog:
    """Return the catalog with a placeholder for each path and URL of this run."""

    def renamed(content: bytes) -> bytes:
        for path, name in names.items():
            content = content.replace(path.encode(), name.encode())
        for pattern, placeholder in _CHANGING.items():
            content = re.sub(pattern, placeholder, content)
        return content

    if catalog.refused is not None:
        return Catalog(refused=renamed(catalog.refused.encode()).decode())
    return Catalog(files={path: renamed(content) for path, content in catalog.files.items()})
