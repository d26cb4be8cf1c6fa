"""Small inventories in plain files, which Commodore and kardinal compile.

A case is a directory of `tests/catalog/fixtures`:

    README.md                   which behaviour it shows, and where kardinal differs
    inventory.yaml              CatalogTenant and CatalogCluster documents
    repositories/global/        one directory for each Git repository: its only commit, on branch `main`
    repositories/web@v1/        an earlier commit of repository `web`, with tag `v1`; sorted by tag
    for_commodore/web/          files that replace those of `repositories/web` when Commodore compiles
    expected/<cluster>/         `manifests/` and `refs/` as Commodore writes them, or `refused.txt`: why it does not
    kardinal/<cluster>/         the same of kardinal, written by hand, where the design differs from Commodore

What a case does not have is taken from `fixtures/common`: the inventory, and each file of its repositories.

In every text, `${ROOT}` is the URL of the directory that holds the repositories (`${ROOT}/web.git`), and
`${COMMIT:web@v1}` is a commit. Authors, dates and order are fixed: the same files and URL give the same commits.

The URL is `file://…` of the directory. A case in which the URL becomes part of a path asks for `PUBLIC_URL`, which Git
translates with the configuration `Repositories.git_config`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pygit2
import yaml

__all__ = ["FIXTURES", "PUBLIC_URL", "Case", "Catalog", "Repositories", "cases", "load", "make_repositories"]

FIXTURES = Path(__file__).parents[2] / "tests" / "catalog" / "fixtures"
PUBLIC_URL = "https://git.example.com/acme"
"""A URL of the repositories that is the same on every machine."""

_COMMON = FIXTURES / "common"
_PLACEHOLDER = re.compile(rb"\$\{(?:ROOT|COMMIT:([a-z0-9@.-]+))\}")
_BRANCH = "refs/heads/main"
_FIRST_COMMIT = 1_767_225_600
"""Seconds: the start of 2026."""


@dataclass(frozen=True)
class Catalog:
    """Result of compiling a cluster: files by path below `manifests/` and `refs/`, or why there is none."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    refused: str | None = None


@dataclass(frozen=True)
class Case:
    """One directory of fixtures."""

    directory: Path

    @property
    def name(self) -> str:
        return self.directory.name

    @property
    def inventory(self) -> Path:
        """The documents of the case, with placeholders in them."""
        own = self.directory / "inventory.yaml"
        return own if own.is_file() else _COMMON / "inventory.yaml"

    def clusters(self) -> list[str]:
        """Return the names of the clusters, sorted."""
        documents = yaml.safe_load_all(self.inventory.read_text())
        return sorted(found["metadata"]["name"] for found in documents if found["kind"] == "CatalogCluster")

    def expected(self, cluster: str, *, url: str) -> Catalog | None:
        """Return what kardinal gives where `url` is the URL of the repositories; None if that is not recorded."""
        for kind in ("kardinal", "expected"):
            if (self.directory / kind / cluster).is_dir():
                return _read(self.directory / kind / cluster, url)
        return None

    def recorded(self, cluster: str, *, url: str) -> Catalog | None:
        """Return what Commodore gave; None if that is not recorded."""
        directory = self.directory / "expected" / cluster
        return _read(directory, url) if directory.is_dir() else None


@dataclass(frozen=True)
class Repositories:
    """The bare repositories of a case, and its documents with the URLs of these repositories."""

    root: Path
    url: str
    inventory: Path
    git_config: Path
    """A configuration of Git that translates `PUBLIC_URL` to the directory; for `GIT_CONFIG_GLOBAL`."""
    commits: Mapping[str, str]
    """Commits by `web` and `web@v1`."""

    def documents(self) -> list[dict[str, Any]]:
        """Return the documents of the inventory."""
        return list(yaml.safe_load_all(self.inventory.read_text()))


def cases() -> list[Case]:
    """Return all cases, sorted by name."""
    return [Case(path.parent) for path in sorted(FIXTURES.glob("*/README.md")) if path.parent != _COMMON]


def load(name: str) -> Case:
    """Return the case of this name."""
    return Case(FIXTURES / name)


def make_repositories(case: Case, root: Path, *, url: str | None = None, commodore: bool = False) -> Repositories:
    """Make the repositories of a case in `root`, an absolute path. For Commodore, with the files that are for it."""
    maker = _Maker(case, root, url or root.as_uri(), commodore=commodore)
    maker.make_all()
    inventory = root / "inventory.yaml"
    inventory.write_bytes(maker.substituted(case.inventory.read_bytes()))
    maker.make_empty_catalogs(yaml.safe_load_all(inventory.read_text()))
    git_config = root / "gitconfig"
    # A commit of another user than of the one who reads it is no concern of these repositories.
    git_config.write_text(f'[url "{root.as_uri()}/"]\n\tinsteadOf = {PUBLIC_URL}/\n[safe]\n\tdirectory = *\n')
    return Repositories(root, maker.url, inventory, git_config, dict(maker.commits))


class _Maker:
    """Makes repositories in the order in which they name each other's commits."""

    def __init__(self, case: Case, root: Path, url: str, *, commodore: bool) -> None:
        self.url = url
        self.commits: dict[str, str] = {}
        self._root = root
        own = case.directory / "repositories"
        # A file of an earlier layer replaces the same file of a later one.
        layers = [*([case.directory / "for_commodore"] if commodore else []), own, _COMMON / "repositories"]
        self._trees: dict[str, dict[str, list[Path]]] = {}
        for path in sorted({path.name for layer in layers if layer.is_dir() for path in layer.iterdir()}):
            name, _, revision = path.partition("@")
            self._trees.setdefault(name, {})[revision] = [layer / path for layer in layers]

    def make_all(self) -> None:
        for name in self._trees:
            self._make(name)

    def make_empty_catalogs(self, documents: Iterator[dict[str, Any]]) -> None:
        """Make a repository without a commit for the catalog of each cluster that has no files yet."""
        for document in documents:
            url = document["spec"].get("catalog", {}).get("url", "")
            path = self._root / url.rpartition("/")[2]
            if url.startswith(self.url) and not path.exists():
                pygit2.init_repository(str(path), bare=True, initial_head="main")

    def substituted(self, content: bytes) -> bytes:
        """Return content with URLs and commits in place of placeholders."""
        return _PLACEHOLDER.sub(self._substitute, content)

    def _substitute(self, found: re.Match[bytes]) -> bytes:
        if found[1] is None:
            return self.url.encode()
        commit = found[1].decode()
        if commit not in self.commits:
            self._make(commit.partition("@")[0])
        return self.commits[commit].encode()

    def _make(self, name: str) -> None:
        path = self._root / f"{name}.git"
        if path.exists():
            return
        repository = pygit2.init_repository(str(path), bare=True, initial_head="main")
        trees = self._trees[name]
        parents: list[pygit2.Oid] = []
        # The commit without a revision is the last one.
        for number, revision in enumerate(sorted(trees, key=lambda revision: (not revision, revision))):
            signature = pygit2.Signature("Fixtures", "fixtures@example.com", _FIRST_COMMIT + 60 * number, 0)
            tree = self._tree(repository, trees[revision])
            commit = repository.create_commit(_BRANCH, signature, signature, revision or "Last", tree, parents)
            self.commits[f"{name}@{revision}" if revision else name] = str(commit)
            if revision:
                repository.references.create(f"refs/tags/{revision}", commit)
            parents = [commit]

    def _tree(self, repository: pygit2.Repository, layers: list[Path]) -> pygit2.Oid:
        builder = repository.TreeBuilder()
        for name in {path.name for layer in layers if layer.is_dir() for path in layer.iterdir()}:
            path = next(layer / name for layer in layers if os.path.lexists(layer / name))
            if path.is_symlink():
                target = os.readlink(path).encode()
                builder.insert(name, repository.create_blob(target), pygit2.enums.FileMode.LINK)
            elif path.is_file():
                executable = path.stat().st_mode & 0o100
                mode = pygit2.enums.FileMode.BLOB_EXECUTABLE if executable else pygit2.enums.FileMode.BLOB
                builder.insert(name, repository.create_blob(self.substituted(path.read_bytes())), mode)
            else:
                tree = self._tree(repository, [layer / name for layer in layers])
                builder.insert(name, tree, pygit2.enums.FileMode.TREE)
        return builder.write()


def _read(directory: Path, url: str) -> Catalog:
    refused = directory / "refused.txt"
    if refused.is_file():
        return Catalog(refused=refused.read_text().replace("${ROOT}", url))
    files = {
        path.relative_to(directory).as_posix(): path.read_bytes().replace(b"${ROOT}", url.encode())
        for part in ("manifests", "refs")
        for path in sorted((directory / part).rglob("*"))
        if path.is_file()
    }
    return Catalog(files=files)
