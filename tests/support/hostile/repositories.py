"""Repositories, files and charts that cost most to read, to edit and to render, by a name for people.

Each of them is a repository of one environment, `environments/dev`, that promotes `sample.IMAGE`; what is hostile in it
was put there by a contributor.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from kardinal_local import sample
from tests.support.repository import GitRepository, create_repository

__all__ = ["CHARTS", "DOCUMENTS", "FILES", "KUSTOMIZATIONS", "OBJECTS", "honest", "of_files"]

ENVIRONMENT = "environments/dev"
KUSTOMIZATION = f"{ENVIRONMENT}/kustomization.yaml"
_IMAGES = f"images: [{{name: {sample.IMAGE}, newTag: '1'}}]\n"
MIB = 1 << 20


def _sample() -> dict[str, str]:
    return {name: content.decode() for name, content in sample.files().items()}


def honest(path: Path) -> None:
    """Make a repository of the sample, once; later ones are copies of it."""
    kept = path.parents[1] / "honest-copy.git"
    if not kept.exists():
        create_repository(kept, _sample())
    shutil.copytree(kept, path)


def of_files(path: Path, files: dict[str, str]) -> None:
    """Make a repository of the sample with other files over it."""
    create_repository(path, _sample() | files)


def _bomb(levels: int, width: int, *, merges: bool = False) -> str:
    """Return a document whose aliases multiply by `width` on each level."""
    lines = ["a0: &a0 {x: y}" if merges else "a0: &a0 [x, x, x]"]
    for number in range(1, levels):
        repeated = ", ".join([f"*a{number - 1}"] * width)
        lines.append(f"a{number}: &a{number} {{<<: [{repeated}]}}" if merges else f"a{number}: &a{number} [{repeated}]")
    return "\n".join(lines) + "\n"


DOCUMENTS = {
    "nested": "x: " + "[" * 400_000 + "\n",
    "nested maps": "{a: " * 100_000 + "\n",
    "aliases": _bomb(30, 9),
    "merges": _bomb(30, 9, merges=True),
    "one alias many times": "x: &a []\ny: [" + "*a," * 300_000 + "*a]\n",
    "many values": "x: [" + "a," * 500_000 + "a]\n",
    "many keys": "".join(f"k{number}: 1\n" for number in range(80_000)),
    "long line": "x: '" + "y" * 1_000_000 + "'\n",
    "many lines": "# \n" * 300_000,
    "large": "x: '" + "y" * (5 * MIB) + "'\n",
    "tags and controls": "x: !!python/object/apply:os.system [id]\ny: !!binary " + "A" * 900_000 + "\n",
    "many documents": "---\na: 1\n" * 100_000,
}
"""Texts that are costly to read as YAML."""


def _edited(text: str) -> dict[str, str]:
    return {KUSTOMIZATION: text + _IMAGES}


def _many_bases() -> dict[str, str]:
    """Return layers of which each names the one below it ten times over."""
    files = {KUSTOMIZATION: "resources: [../../layer-0]\n" + _IMAGES}
    for number in range(60):
        below = ", ".join(f"../layer-{number + 1}/./" for _ in range(10))
        files[f"layer-{number}/kustomization.yaml"] = f"resources: [{below}]\n"
    return files


FILES: dict[str, dict[str, str]] = {
    **{name: _edited(text) for name, text in DOCUMENTS.items()},
    "many layers": _many_bases(),
    "a circle": {
        KUSTOMIZATION: "resources: [../../base]\n" + _IMAGES,
        "base/kustomization.yaml": f"resources: [../{ENVIRONMENT}]\n",
    },
    "costly manifests": {
        KUSTOMIZATION: "resources: [" + ", ".join(f"m{number}.yaml" for number in range(60)) + "]\n" + _IMAGES,
        **{f"{ENVIRONMENT}/m{number}.yaml": "x: [" + "a," * 100_000 + f"{number}]\n" for number in range(60)},
    },
}
"""Files of environments that are edited."""


def _chart(template: str, **more: str) -> dict[str, str]:
    head = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
    return {"charts/web/Chart.yaml": head, "charts/web/templates/web.yaml": template, **more}


CHARTS: dict[str, dict[str, str]] = {
    "endless output": _chart('{{ range until 100000000 }}{{ repeat 100 "x: y\\n" }}{{ end }}'),
    "endless loop": _chart("{{ range until 2000000 }}{{ range until 2000000 }}{{ end }}{{ end }}"),
    "greedy": _chart('{{ len (repeat 1200000000 "x") }}\n'),
    "doubling": _chart('{{ $text := "x" }}{{ range until 40 }}{{ $text = cat $text $text }}{{ end }}\n'),
    "calls itself": _chart('{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}\n'),
    "large output": _chart('kind: A\nx: {{ repeat 15000000 "x" }}\n'),
    "many objects": _chart('{{ range until 200000 }}---\nkind: A\nmetadata: {name: "a{{ . }}"}\n{{ end }}'),
    "nested output": _chart('kind: A\nx: {{ repeat 500000 "[" }}\n'),
    "aliases in output": _chart("kind: A\n" + _bomb(30, 9)),
    "hashes": _chart('{{ range until 100000 }}{{ $x := derivePassword 1 "long" "p" "u" "s" }}{{ end }}'),
}
KUSTOMIZATIONS: dict[str, dict[str, str]] = {
    "many generators": {
        KUSTOMIZATION: "configMapGenerator:\n"
        + "".join(f"- {{name: g{number}, literals: [a=b]}}\n" for number in range(1500))
        + _IMAGES
    },
    "many files": {
        KUSTOMIZATION: "configMapGenerator: [{name: x, files: ["
        + ", ".join(f"f{number}" for number in range(900))
        + "]}]\n"
        + _IMAGES,
        **{f"{ENVIRONMENT}/f{number}": "x" * 20_000 for number in range(900)},
    },
    "nested": _edited(DOCUMENTS["nested"]),
    "aliases": _edited(DOCUMENTS["aliases"]),
    "many layers": _many_bases(),
}
"""Repositories on which `kustomize-build` works."""


def _written(path: Path, kind: str, content: bytes) -> str:
    command = ["git", "-C", str(path), "hash-object", "-t", kind, "-w", "--literally", "--stdin"]
    return subprocess.run(command, input=content, capture_output=True, check=True).stdout.decode().strip()


def _commit(path: Path, *beside: str, environment: str = "", message: str = "work") -> None:
    """Put a commit on main whose `environments/dev` has the kustomization, and a root with these entries more."""
    repository = GitRepository(path)
    if environment:
        above = repository.git("mktree", "--missing", stdin=f"040000 tree {environment}\tdev\n")
        beside = (*beside, f"040000 tree {above}\tenvironments")
    kept = [line for line in repository.git("ls-tree", "main").splitlines() if not line.endswith("\tenvironments")]
    if not environment:
        kept = repository.git("ls-tree", "main").splitlines()
    tree = repository.git("mktree", "--missing", stdin="".join(f"{line}\n" for line in (*kept, *beside)))
    made = repository.git("commit-tree", tree, "-p", "main", "-F", "-", stdin=message)
    repository.git("update-ref", "refs/heads/main", made)


def _entries(path: Path, number: int) -> Iterator[bytes]:
    blob = bytes.fromhex(_written(path, "blob", b"x"))
    return (b"100644 %07d\0%b" % (each, blob) for each in range(number))


def _wide(path: Path) -> None:
    _commit(path, f"040000 tree {_written(path, 'tree', b''.join(_entries(path, 1_000_000)))}\tvendor")


def _wide_environment(path: Path) -> None:
    _commit(path, environment=_written(path, "tree", b"".join(_entries(path, 300_000))))


def _deep_directories(path: Path) -> None:
    line = f"100644 blob {_written(path, 'blob', b'x')}\tx"
    for _ in range(300):
        line = f"040000 tree {GitRepository(path).git('mktree', stdin=f'{line}{chr(10)}')}\td"
    _commit(path, environment=line.split()[2].partition("\t")[0])


def _large_file(path: Path) -> None:
    blob = _written(path, "blob", bytes(256 * MIB))
    tree = GitRepository(path).git("mktree", stdin=f"100644 blob {blob}\tkustomization.yaml\n")
    _commit(path, environment=tree)


def _large_message(path: Path) -> None:
    _commit(path, message="x" * (32 * MIB))


def _long_history(path: Path) -> None:
    lines = [
        "commit refs/heads/main\ncommitter x <x@example.org> 1700000000 +0000\ndata 1\nx\nfrom refs/heads/main^0\n"
    ]
    one = "commit refs/heads/main\ncommitter x <x@example.org> 1700000000 +0000\ndata 1\nx\n"
    lines += [one] * 100_000
    GitRepository(path).git("fast-import", "--quiet", stdin="".join(lines))


OBJECTS: dict[str, Callable[[Path], None]] = {
    "directory of a million entries": _wide,
    "environment of 300,000 files": _wide_environment,
    "directories in each other": _deep_directories,
    "file of 256 MiB": _large_file,
    "message of 32 MiB": _large_message,
    "100,000 commits": _long_history,
}
"""Changes of an honest repository, each made by a contributor."""
