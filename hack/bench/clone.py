"""Measure the first promotion into a large repository, beside `git clone --depth 1` of it.

    nice python -m hack.bench.clone
    nice python -m hack.bench.clone --files 1000 --commits 500

A repository is generated and served over HTTP on loopback by Git itself. Every way begins with an empty directory; what
the server does is part of the time, and what it is to make of the repository anew for a clone without history counts
as well. The disk is that of the directory afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from kardinal.clock import SystemClock
from kardinal.git import GitCredentials, GitRunner, Repositories
from kardinal.tree.commit_message import CommitMessage
from kardinal.tree.edit import Edit, Tree
from tests.support.smart_server import PASSWORD, USER, SmartServer, serving

_PER_DIRECTORY = 100
_TEXT = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
metadata: {{name: app-{number}}}
resources: [../../base]
images:
  - name: ghcr.io/acme/app-{number}
    newTag: 1.0.{version}
"""


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--commits", type=int, default=50_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        _generate(root / "large.git", given.files, given.commits)
        print(f"{given.files:,} files, {given.commits:,} commits, {_mebibytes(root / 'large.git')} at the server")
        print(f"{platform.platform()}, {os.cpu_count()} cores, {_git('version').strip()}\n")
        print(f"| {'way':<54} | {'seconds':>7} | {'disk':>9} |\n|---|---|---|")
        with serving(root, None) as server:
            url = f"http://{USER}:{PASSWORD}@{server.url.partition('://')[2]}/large.git"
            _clone("git clone --depth 1 (with the files)", root / "shallow", ["--depth", "1"], url)
            _clone("git clone --depth 1 --bare", root / "bare", ["--depth", "1", "--bare"], url)
            _clone("git clone --bare (with the history)", root / "whole", ["--bare"], url)
            asyncio.run(_promotions(root / "mirrors", server))


def _generate(directory: Path, files: int, commits: int) -> None:
    _git("init", "--quiet", "--bare", "--initial-branch=main", str(directory))
    for setting in ("uploadpack.allowFilter", "http.receivepack"):
        _git("-C", str(directory), "config", setting, "true")
    with tempfile.TemporaryFile("w+") as history:
        history.writelines(_history(files, commits))
        history.seek(0)
        subprocess.run(["git", "-C", str(directory), "fast-import", "--quiet"], stdin=history, check=True)
    # Git hosts keep repositories packed, with a bitmap index.
    _git("-C", str(directory), "repack", "-a", "-d", "-q", "--write-bitmap-index")
    _git("-C", str(directory), "commit-graph", "write", "--reachable")


def _history(files: int, commits: int) -> Iterator[str]:
    for commit in range(commits):
        changed: Sequence[int] = range(files) if commit == 0 else [commit * 7919 % files]
        message = f"commit {commit}"
        yield f"commit refs/heads/main\ncommitter a <a@example.org> {1_700_000_000 + commit} +0000\n"
        yield f"data {len(message)}\n{message}\n"
        for number in changed:
            text = _TEXT.format(number=number, version=commit)
            yield f"M 100644 inline {_path(number)}\ndata {len(text)}\n{text}\n"


def _path(number: int) -> str:
    return f"apps/group-{number // _PER_DIRECTORY // 10}/set-{number // _PER_DIRECTORY}/{number}/kustomization.yaml"


def _clone(title: str, target: Path, options: Sequence[str], url: str) -> None:
    began = time.perf_counter()
    _git("clone", "--quiet", *options, url, str(target))
    _print(title, time.perf_counter() - began, target)


async def _promotions(directory: Path, server: SmartServer) -> None:
    runner = GitRunner()
    repositories = Repositories(directory, runner=runner, clock=SystemClock(), allow_local=False)
    remote = repositories.open(f"{server.url}/large.git", GitCredentials(USER, PASSWORD))
    try:
        for number, title in enumerate(("first promotion (mirror, edit, commit, push)", "second one, of another file")):
            began = time.perf_counter()
            await remote.land("main", _edit(_path(number * 500)), CommitMessage("promote", "", {"Number": str(number)}))
            _print(f"kardinal: {title}", time.perf_counter() - began, directory)
    finally:
        await repositories.close()
        runner.close()


def _edit(path: str) -> Edit:
    def edit(tree: Tree) -> dict[str, bytes]:
        return {path: (tree.read(path) or b"").replace(b"newTag: 1", b"newTag: 2")}

    return edit


def _print(title: str, seconds: float, directory: Path) -> None:
    print(f"| {title:<54} | {seconds:>7.1f} | {_mebibytes(directory):>9} |", flush=True)


def _mebibytes(directory: Path) -> str:
    """Return the size of the files of a directory on disk, as a text in MiB."""
    blocks = sum(os.lstat(os.path.join(at, name)).st_blocks for at, _, names in os.walk(directory) for name in names)
    return f"{blocks * 512 / (1 << 20):.0f} MiB"


def _git(*arguments: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0"}
    return subprocess.run(["git", *arguments], env=environment, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
