"""Bytes of others are read and decoded by bounded readers alone, and the page on security has the table of these."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from hack.docs.foreign_bytes import declared, with_table

ROOT = Path(__file__).parents[2]
PACKAGES = ("kardinal", "kardinal_agent", "kardinal_controller", "kardinal_local", "kardinal_supplychain")

READERS = {
    "kardinal/bounded/documents.py": "counts size, nesting and values before it decodes",
    "kardinal/kube/bounds.py": "counts size, nesting and values before it decodes",
    "kardinal/kube/embedded.py": "is the count of a kubeconfig, before `contexts` loads it",
    "kardinal/git/stored.py": "asks for the size of an object before it is read",
    "kardinal/catalog/worker/classes.py": "looks at size and nesting before it composes, in a process of its own",
    "kardinal/edits/yaml/yaml_text.py": "counts the events of a document before it is composed",
    "kardinal/edits/kustomize/manifests.py": "counts the events of a document before it is composed",
    "kardinal_controller/http/credentials.py": "counts the events of a document before it is composed",
    "kardinal_supplychain/ytt.py": "looks at size, nesting and aliases before it is composed",
}
"""The modules in which bytes of others are read and decoded, once they are counted."""

OWN = {
    "kardinal/catalog/worker/": "files of one tenant, in a process with bounds of its own",
    "kardinal/cel/encodings.py": "a text whose every character the expression has paid for, in steps and bytes",
    "kardinal/kube/contexts.py": "the kubeconfig of the person who runs the command, or one that is counted",
    "kardinal/promotion/policy/attestation.py": "an annotation, which an API server bounds",
    "kardinal/promotion/steps/branch_layout.py": "a record whose size is looked at before",
    "kardinal/edits/helm/chart_lock.py": "a file that `document_text` has composed before, without aliases",
    "kardinal/edits/yaml/document_text.py": "text that `yaml_text` has composed before",
    "kardinal/edits/yaml/yaml_scalar.py": "one scalar that was written here",
    "kardinal_supplychain/realize/preview.py": "a preview in a status of ours, whose size is looked at before",
    "kardinal_local/": "the programs and files of one workstation; its API server has bounds of its own",
}
"""Modules that decode what is not of others, or is bounded before it gets there."""

DECODERS = {
    "json": {"load", "loads"},
    "orjson": {"loads"},
    "yaml": {"load", "load_all", "safe_load", "safe_load_all", "parse", "compose", "compose_all", "scan"},
}
BODIES = {"json", "read", "text"}
"""Methods that read the whole of an answer, or of a request."""
OBJECTS = {"read", "read_header", "read_prefix"}
LIBGIT2 = {
    "create_from",
    "blame",
    "descendant_of",
    "diff",
    "merge_base",
    "merge_base_many",
    "merge_bases",
    "merge_commits",
    "merge_file_from_index",
    "merge_trees",
    "peel",
    "revparse_single",
    "walk",
}
"""Methods of libgit2 that read objects of any size."""
REPOSITORIES = {"lent", "opened", "repo", "repository"}


def raw_reads(source: str) -> Iterator[str]:
    """Yield the reads of a module that look at no bound."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Await) and isinstance(node.value, ast.Call):
            call = node.value
            if isinstance(call.func, ast.Attribute) and call.func.attr in BODIES and not call.args:
                yield f"{node.lineno}: {ast.unparse(call)}"
        elif isinstance(node, ast.expr) and _reads_raw(node):
            yield f"{node.lineno}: {ast.unparse(node)}"


def _reads_raw(node: ast.expr) -> bool:
    match node:
        case ast.Subscript(value=of):
            return _name(of) in REPOSITORIES
        case ast.Call(func=ast.Attribute() as function):
            return _is_raw(function)
    return False


def _is_raw(function: ast.Attribute) -> bool:
    of = _name(function.value)
    method = function.attr
    return (
        method in DECODERS.get(of, ())
        or (of in ("odb", "_odb") and method in OBJECTS)
        or (of in REPOSITORIES and method in {"get", *LIBGIT2})
        or (of == "Patch" and method in LIBGIT2)
    )


def _name(node: ast.expr) -> str:
    """`yaml` → yaml; `repository.odb` → odb."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


@cache
def found() -> dict[str, list[str]]:
    """Return the raw reads of each module that has some."""
    modules = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    reads = {str(path.relative_to(ROOT)): list(raw_reads(path.read_text())) for path in modules}
    return {module: lines for module, lines in reads.items() if lines}


def covers(entry: str, module: str) -> bool:
    return module.startswith(entry) if entry.endswith("/") else module == entry


def test_bytes_of_others_are_read_by_bounded_readers_alone() -> None:
    known = [*READERS, *OWN]
    outside = {module: lines for module, lines in found().items() if not any(covers(entry, module) for entry in known)}
    assert outside == {}, "read them with kardinal.bounded, or say here why they are bounded"


def test_values_of_yaml_are_made_by_the_bounded_loader() -> None:
    """A number of 256 KiB holds the interpreter for half a minute, and a wrong one raises any error of Python."""
    unbounded = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for package in PACKAGES[:3]
        for path in sorted((ROOT / package).rglob("*.py"))
        if "yaml." in (source := path.read_text())
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and _makes_values(node)
    ]
    assert unbounded == [], "load it with kardinal.bounded.loader.BoundedLoader"


def _makes_values(call: ast.Call) -> bool:
    function = ast.unparse(call.func)
    loaders = [ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg == "Loader"]
    loaded = function in ("yaml.load", "yaml.load_all") and any(loader.endswith("SafeLoader") for loader in loaders)
    return loaded or function in ("yaml.CSafeLoader", "yaml.SafeLoader", "yaml.safe_load", "yaml.safe_load_all")


def test_no_entry_is_left_over() -> None:
    modules = found()
    unused = [entry for entry in (*READERS, *OWN) if not any(covers(entry, module) for module in modules)]
    assert unused == []


@pytest.mark.parametrize(
    "line",
    [
        "json.loads(body)",
        "orjson.loads(body)",
        "yaml.load(text, Loader=yaml.CSafeLoader)",
        "yaml.compose_all(text)",
        "async def f(response): return await response.read()",
        "async def f(response): return await response.json()",
        "repository[oid]",
        "repository.get(oid)",
        "repository.odb.read(oid)",
        "self._odb.read(oid)",
        "repository.merge_trees(one, two, three)",
        "pygit2.Patch.create_from(old, new)",
    ],
)
def test_a_raw_read_is_seen(line: str) -> None:
    assert list(raw_reads(line))


@pytest.mark.parametrize(
    "line", ["decode(body, LIMITS)", "tree.read(path)", "values.get(name)", "async def f(w): return await w.read(key)"]
)
def test_a_bounded_read_is_not_taken_for_a_raw_one(line: str) -> None:
    assert not list(raw_reads(line))


def test_the_table_of_the_page_is_that_of_the_readers() -> None:
    page = (ROOT / "docs/security.md").read_text()
    assert page == with_table(page), "docs/security.md is stale: make docs"


def test_every_reader_names_its_hostile_inputs() -> None:
    assert [row.bytes for row in declared() if not row.tests] == []
    names = [row.bytes for row in declared()]
    assert sorted(set(names)) == sorted(names)
