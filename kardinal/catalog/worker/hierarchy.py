"""Merge the nodes of a hierarchy with reclass-rs, which is what Project Syn merges with.

The maps of reclass-rs have another order in each process, so they are sorted here. Its errors are texts, which are read
here: each becomes a sentence with the place and the remedy.

reclass-rs overflows its stack on classes that include each other, which kills the process. The caller then merges again
with `walk_first`, in another process.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import orjson
from reclass_rs import Reclass

from kardinal.catalog.errors import CatalogError, Where
from kardinal.catalog.values import Merged, Node
from kardinal.catalog.worker.classes import CLASSES, ClassFiles, MergedClass, at_path, key_text
from kardinal.objects.text import cut, escaped

__all__ = ["merge", "origin"]

_DEPTH: Final = 128
_SHOWN: Final = 400
_QUERY: Final = re.compile(r"(?<!\\)\$\[\s*(?:\+\w+\s+)*(?:exports:|self:|if\s)")
"""An inventory query of Reclass, such as `$[ exports:port if exports:role == web ]`."""
_NOT_YAML: Final = re.compile(r"[^\x20-\x7e]")
"""Characters that JSON may have in a string, and YAML may not, among others."""
_PREFIX: Final = re.compile(
    r"^(Error while (rendering inventory|discovering classes): )?(Error (while )?rendering (node )?\S+: )?"
)


def merge(
    root: Path, nodes: Mapping[str, Node], *, tolerate_missing: bool, walk_first: bool = False
) -> dict[str, Merged]:
    """Return the merge of each node, with the classes below `inventory/classes` of the layout `root`.

    `tolerate_missing`: classes that do not exist count as empty. `walk_first`: look for classes that include each other
    before reclass-rs reads them. Raises `CatalogError`.
    """
    hierarchy = _Hierarchy(root, tolerate_missing=tolerate_missing)
    if walk_first or hierarchy.files.suspicious:
        for node in nodes.values():
            hierarchy.steps(node)
    with tempfile.TemporaryDirectory(prefix="nodes-", dir=root / "inventory") as directory:
        for name, node in nodes.items():
            content = orjson.dumps({"classes": node.classes, "parameters": node.parameters})
            Path(directory, f"{name}.yml").write_text(_NOT_YAML.sub(_escape, content.decode()))
        try:
            reclass = _call(Reclass, str(root), directory, str(root / CLASSES), tolerate_missing)
        except _Failed as failed:
            raise hierarchy.explained(str(failed), Node((), {})) from None
        try:
            found = _call(reclass.inventory).nodes
        except _Failed as failed:
            # Nodes are merged in parallel, and this is the error of any of them: that of the first by name is raised.
            for name in sorted(nodes):
                try:
                    _call(reclass.nodeinfo, name)
                except _Failed as first:
                    raise hierarchy.explained(str(first), nodes[name]) from None
            raise hierarchy.explained(str(failed), Node((), {})) from None
    return {name: _merged(found[name], hierarchy, nodes[name]) for name in nodes}


def origin(root: Path, node: Node, path: str) -> list[tuple[str, object]]:
    """Return the classes that set the parameter at `path`, such as `nginx.replicas`, each with its value there.

    They are in the order of the merge. The node's own parameters come last, by the name `(node)`.
    """
    steps = _Hierarchy(root, tolerate_missing=True).steps(node)
    return [(step.name, value) for step in steps for value in at_path(step.parameters, path)]


def _merged(info: Any, hierarchy: _Hierarchy, node: Node) -> Merged:
    queries: list[str] = []
    parameters = _sorted(info.parameters, "", queries)
    for path in queries:
        for step in hierarchy.steps(node):
            if any(_QUERY.search(value) for value in at_path(step.parameters, path) if isinstance(value, str)):
                raise CatalogError(
                    "refused",
                    "an inventory query, `$[ … ]`, reads the nodes of other clusters",
                    where=Where(file=step.file, parameter=path),
                    remedy="Write the value, or a reference `${…}`, in its place",
                )
    return Merged(tuple(info.applications), tuple(info.classes), parameters)


def _sorted(value: Any, path: str, queries: list[str]) -> Any:
    """Return a value with the keys of all mappings as texts, and sorted; `queries` gets the paths of some strings."""
    if isinstance(value, dict):
        texts = {key_text(key): below for key, below in value.items()}
        if len(texts) < len(value):
            raise CatalogError(
                "invalid", "two keys are the same text", where=Where(parameter=path), remedy="Rename one of them"
            )
        return {key: _sorted(texts[key], f"{path}.{key}" if path else key, queries) for key in sorted(texts)}
    if isinstance(value, list):
        return [_sorted(below, path, queries) for below in value]
    if isinstance(value, str) and _QUERY.search(value):
        queries.append(path)
    elif isinstance(value, float) and not math.isfinite(value):
        raise CatalogError(
            "invalid", f"{value} is no number of JSON", where=Where(parameter=path), remedy="Write it in quotes"
        )
    return value


def _escape(found: re.Match[str]) -> str:
    return f"\\U{ord(found[0]):08x}"


class _Failed(Exception):
    """The text of an error of reclass-rs."""


def _call(function: Callable[..., Any], *arguments: object) -> Any:
    try:
        return function(*arguments)
    except ValueError as error:
        raise _Failed(str(error)) from None
    except BaseException as error:
        # pyo3 derives the exception for a panic, which it does not export, from BaseException.
        if type(error).__name__ != "PanicException":
            raise
        raise _Failed(str(error)) from None


class _Hierarchy:
    """The classes of a layout, and what reclass-rs says about them."""

    def __init__(self, root: Path, *, tolerate_missing: bool) -> None:
        self._root = root
        self._tolerate_missing = tolerate_missing
        self.files = ClassFiles(root)

    def steps(self, node: Node) -> list[MergedClass]:
        """Return the classes of a node in the order of the merge, and at last the node itself."""
        return list(self.files.walk(node, tolerate_missing=self._tolerate_missing))

    def explained(self, text: str, node: Node) -> CatalogError:
        """Return the error for what reclass-rs said about a node."""
        said = _PREFIX.sub("", text).partition("\n")[0].replace(f"{self._root}/", "")
        try:
            # It finds a class that is not there, not UTF-8 or not YAML, with the place in its file.
            steps = self.steps(node)
        except CatalogError as error:
            return error
        for pattern, explain in _ERRORS:
            if found := pattern.search(said):
                return explain(found, steps)
        return CatalogError("invalid", f"the hierarchy cannot be merged: {cut(escaped(said), _SHOWN)}")


def _place(steps: list[MergedClass], path: str, *, containing: str = "") -> Where:
    """Return the last class that sets a parameter, to a value with the text `containing` if there is one."""
    setting = [(step, value) for step in steps for value in at_path(step.parameters, path)]
    naming = [step for step, value in setting if containing in str(value)]
    step = next(reversed(naming or [step for step, _ in setting]), None)
    return Where(file=step.file if step else "", parameter=path)


def _unknown_reference(found: re.Match[str], steps: list[MergedClass]) -> CatalogError:
    reference = found["reference"]
    path = found["path"]
    if not path:
        step = next((each for each in steps if any(reference in name for name in each.classes)), None)
        return CatalogError(
            "invalid",
            f"the name of a class has the reference {reference}, and there is no such parameter so far",
            where=Where(file=step.file if step else ""),
            remedy="Set it in the facts of the cluster, or in a class that is included before",
        )
    return CatalogError(
        "invalid",
        f"the reference {reference} leads to no parameter",
        where=_place(steps, path, containing=reference),
        remedy=f"Set {reference[2:-1].replace(':', '.')}, or write {reference[:-1]}::DEFAULT}}",
    )


def _broken_lookup(found: re.Match[str], steps: list[MergedClass]) -> CatalogError:
    reference = found["reference"]
    path = found["path"]
    return CatalogError(
        "invalid",
        f"the reference {reference} leads through a value that is no mapping, at {found['key']}",
        where=_place(steps, path, containing=reference),
        remedy="A reference names keys of mappings alone",
    )


def _loop(found: re.Match[str], steps: list[MergedClass]) -> CatalogError:
    paths = sorted(path.replace(":", ".") for path in re.findall(r'"([^"]*)"', found["paths"]))
    return CatalogError(
        "invalid",
        f"references lead in a loop: {', '.join(f'${{{path}}}' for path in paths)}".replace(".", ":"),
        where=_place(steps, paths[0]) if paths else Where(),
        remedy="Set one of these parameters to a value",
    )


def _deep_references(found: re.Match[str], steps: list[MergedClass]) -> CatalogError:
    return CatalogError(
        "invalid",
        "references lead to references more than 64 times",
        where=_place(steps, found["path"]),
        remedy="Set one of these parameters to a value",
    )


def _constant(found: re.Match[str], steps: list[MergedClass]) -> CatalogError:
    key = found["key"]
    declared: dict[str, str] = {}
    for step in steps:
        for path, constant in _keys(step.parameters, key):
            if path in declared:
                return CatalogError(
                    "invalid",
                    f"the class {declared[path]} makes {path} a constant, and {step.name} sets it again",
                    where=Where(file=step.file, parameter=path),
                    remedy=f"Remove it here, or the sign = before {key} there",
                )
            if constant:
                declared[path] = step.name
    return CatalogError("invalid", f"the constant {key} is set again", where=Where(parameter=key))


def _keys(parameters: Mapping[str, Any], key: str, above: str = "") -> Iterator[tuple[str, bool]]:
    """Yield the paths at which `key` is set, and whether it is made constant there."""
    for written, value in parameters.items():
        name = written.lstrip("~=")
        path = f"{above}{name}"
        if name == key:
            yield path, written.startswith("=")
        if isinstance(value, Mapping):
            yield from _keys(value, key, f"{path}.")


_KINDS: Final = {"mapping": "a mapping", "sequence": "a list"}


def _kind(name: str) -> str:
    return _KINDS.get(name.removeprefix("Value::").lower(), "one value")


def _other_kind(found: re.Match[str], steps: list[MergedClass]) -> CatalogError:
    path = found["path"]
    return CatalogError(
        "invalid",
        f"{_kind(found['new'])} cannot be merged over {_kind(found['old'])}",
        where=_place(steps, path),
        remedy=f"Replace the earlier value: write ~{path.rpartition('.')[2]}",
    )


def _not_a_class(found: re.Match[str], steps: list[MergedClass]) -> CatalogError:
    name = found["name"]
    step = next((each for each in steps if each.name == name), None)
    line = re.search(r" at line (\d+) column \d+", found["problem"])
    problem = re.sub(r" at line \d+ column \d+.*", "", found["problem"])
    remedy = ""
    limit = "limit exceeded" in problem
    duplicate = re.search(r'duplicate (entry with key|field) [`"](?P<key>[^`"]*+)[`"]', problem)
    if limit:
        problem = "its aliases multiply, or it is nested too deep"
        remedy = "Write it with fewer aliases"
    elif duplicate:
        problem = f"the key {duplicate['key']} is there twice"
        remedy = "Remove one of them"
    return CatalogError(
        "limit" if limit else "invalid",
        cut(escaped(problem), _SHOWN),
        where=Where(file=step.file if step else "", line=int(line[1]) if line else 0),
        remedy=remedy,
    )


def _two_files(found: re.Match[str], _: list[MergedClass]) -> CatalogError:
    one, other = sorted((found["one"], found["other"]))
    return CatalogError(
        "invalid",
        f"the class {found['name']} has two files, {one} and {other}",
        where=Where(file=other),
        remedy="Remove one of them",
    )


def _link(found: re.Match[str], _: list[MergedClass]) -> CatalogError:
    return CatalogError(
        "refused",
        "a symbolic link leads to a directory above it, or to nothing",
        where=Where(file=found["loop"] or found["nothing"]),
        remedy="Remove the link",
    )


def _bad_default(found: re.Match[str], steps: list[MergedClass]) -> CatalogError:
    return CatalogError(
        "invalid",
        f"the default of the reference to {found['reference'].replace(':', '.')} is not YAML",
        where=_place(steps, found["path"]),
        remedy="Write a default without braces, or set the parameter",
    )


def _unclosed(found: re.Match[str], steps: list[MergedClass]) -> CatalogError:
    reference = found["reference"]
    file = next((step.file for step in steps if reference in str(step.parameters) or reference in step.classes), "")
    return CatalogError(
        "invalid",
        f"{cut(escaped(reference), _SHOWN)} is no reference",
        where=Where(file=file),
        remedy="Write ${path:to:parameter}, or \\\\${ for these two characters",
    )


_ERRORS: Final[list[tuple[re.Pattern[str], Callable[[re.Match[str], list[MergedClass]], CatalogError]]]] = [
    (
        re.compile(r"lookup error for reference '(?P<reference>.*)' in parameter '(?P<path>.*)': key"),
        _unknown_reference,
    ),
    (
        re.compile(r"looking up key '(?P<key>.*)' in reference '(?P<reference>.*)' for parameter '(?P<path>.*)':"),
        _broken_lookup,
    ),
    (re.compile(r"Detected reference loop with reference paths \[(?P<paths>.*)\]"), _loop),
    (re.compile(r"exceeded recursion depth of \d+ for parameter '(?P<path>[^']*)'"), _deep_references),
    (re.compile(r'Can\'t overwrite constant key "(?P<key>.*)"'), _constant),
    (re.compile(r"In (?P<path>.*): Can't merge (?P<new>\S+) over (?P<old>\S+)"), _other_kind),
    (re.compile(r"^Deserializing (?P<name>\S+): (?P<problem>.*)"), _not_a_class),
    (
        re.compile(r"of class '(?P<name>.*)' in '(?P<one>.*)' collides with definition in '(?P<other>.*)'\."),
        _two_files,
    ),
    (
        re.compile(r"parsing default value for reference '(?P<reference>.*)' in parameter '(?P<path>.*)':"),
        _bad_default,
    ),
    (
        re.compile(
            r"File system loop found: (?P<loop>.*) points to|IO error for operation on (?P<nothing>.*): No such"
        ),
        _link,
    ),
    (re.compile(r"Error parsing reference '(?P<reference>.*)'"), _unclosed),
]
