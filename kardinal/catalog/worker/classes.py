"""The class files of a layout: which there are, and the walk through them in the order of the merge.

reclass-rs reads these files itself. They are read here where it says too little or would crash: to name the file of an
error, to find the classes that set a parameter, for classes that include each other, and for files that it must not
read at all. So a merge that succeeds reads no file here.

A layout consists of links into trees. A link inside a tree, which the owner of the tree has made, is not followed.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from kardinal.bounded import ForeignBytes
from kardinal.bounded.loader import NUMBER_LIMIT, BoundedLoader
from kardinal.catalog.errors import CatalogError, Where
from kardinal.catalog.values import Node
from kardinal.objects import JsonObject
from kardinal.objects.text import escaped

__all__ = ["CLASSES", "ITSELF", "ClassFiles", "MergedClass", "at_path", "key_text"]

CLASSES: Final = "inventory/classes"
"""The directory of classes in a layout."""
ITSELF: Final = "(node)"
"""The name of a node's own parameters beside the names of classes."""

_SIZE: Final = 5_000_000
_DEPTH: Final = 128
_CHAIN: Final = 200
"""The most classes of which each includes the next one."""
_SUFFIXES: Final = (".yml", ".yaml")
_REFERENCE: Final = re.compile(r"\$\{([^${}]*)\}")
_NESTED: Final = 64
"""The most references in the name of one class."""

FOREIGN = ForeignBytes(
    "classes of a catalog's hierarchy",
    of="tenant",
    size=f"{_SIZE // 1_000_000} MB a file",
    unpacked="not compressed",
    structure=f"{_DEPTH} levels; aliases are not copied",
    time="the CPU limit of a worker",
    held="one merge for each worker, in the worker's share of memory",
    decoded="in a worker, behind its walls",
    tests=("catalog/test_bad_classes.py",),
)


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    link: bool
    """Whether a tree has a link here."""


@dataclass(frozen=True, slots=True)
class MergedClass:
    """A class in the order of the merge. `file` is relative to the layout; empty for the node's own parameters."""

    name: str
    file: str
    classes: tuple[str, ...]
    parameters: JsonObject


class ClassFiles:
    """The class files below `root`, a layout."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._files: dict[str, _File] = {}
        self._linked: list[str] = []
        """The names of directories that are links of a tree, such as `global.shared`."""
        self._directories: set[str] = set()
        self.suspicious = False
        """Whether a file is a link, or too large: reclass-rs must not read it."""
        self._scan(root / CLASSES, (), inside=False)
        self._read: dict[str, MergedClass] = {}

    def file_of(self, name: str) -> str:
        """Return the path of a class relative to the layout; empty if there is none."""
        found = self._files.get(name)
        return str(found.path.relative_to(self._root)) if found is not None else ""

    def nearest(self, name: str) -> str:
        """Return the name of a class that is most like `name`; empty if none is."""
        return next(iter(difflib.get_close_matches(name, self._files, n=1, cutoff=0.7)), "")

    def missing(self, name: str, *, included_by: str) -> CatalogError:
        """Return the error for a class that does not exist."""
        where = Where(file=self.file_of(included_by))
        by = f", which {included_by} includes" if included_by and included_by != ITSELF else ""
        if name in self._directories:
            return CatalogError(
                "invalid",
                f"the class {name}{by and f'{by},'} is a directory",
                where=where,
                remedy=f"Add the file {name.replace('.', '/')}/init.yml, or include a class of the directory",
            )
        near = self.nearest(name)
        return CatalogError(
            "invalid",
            f"there is no class {name}{by}",
            where=where,
            remedy=f"Did you mean {near}?"
            if near
            else f"Add the file {name.replace('.', '/')}.yml, or do not include it",
        )

    def walk(self, node: Node, *, tolerate_missing: bool) -> Iterator[MergedClass]:
        """Yield the classes of a node in the order of the merge, and at last the node itself.

        Raises `CatalogError` for a class that cannot be read, that is not there or that includes itself.
        """
        seen: set[str] = set()
        so_far: JsonObject = {}
        own = MergedClass(ITSELF, "", node.classes, node.parameters)
        try:
            yield from self._walk(own, (), seen, so_far, tolerate_missing=tolerate_missing)
        except RecursionError:
            raise CatalogError(
                "limit", f"parameters are nested too deep, or more than {_CHAIN} classes include each other in a row"
            ) from None

    def _walk(
        self, step: MergedClass, above: tuple[str, ...], seen: set[str], so_far: JsonObject, *, tolerate_missing: bool
    ) -> Iterator[MergedClass]:
        if len(above) > _CHAIN:
            raise RecursionError
        for written in step.classes:
            name = _absolute(_resolved(written, so_far), "" if step.name == ITSELF else step.name)
            if name in above:
                circle = " → ".join((*above[above.index(name) :], name))
                raise CatalogError(
                    "invalid",
                    f"the class {name} includes itself: {circle}",
                    where=Where(file=step.file),
                    remedy="Remove one of these classes from the `classes` of another one",
                )
            if name in seen:
                continue
            included = self._step(name, included_by=step, tolerate_missing=tolerate_missing)
            if included is not None:
                yield from self._walk(included, (*above, name), seen, so_far, tolerate_missing=tolerate_missing)
            seen.add(name)
        yield step
        _add(so_far, step.parameters)

    def _step(self, name: str, *, included_by: MergedClass, tolerate_missing: bool) -> MergedClass | None:
        found = self._files.get(name)
        if found is None:
            if any(name.startswith(f"{linked}.") or name == linked for linked in self._linked):
                raise self._is_link(name, included_by.file)
            if tolerate_missing:
                return None
            raise self.missing(name, included_by=included_by.name)
        if found.link:
            raise self._is_link(name, self.file_of(name))
        if name not in self._read:
            self._read[name] = _load(name, found.path, self.file_of(name))
        return self._read[name]

    def _is_link(self, name: str, file: str) -> CatalogError:
        return CatalogError(
            "refused",
            f"the class {name} is a symbolic link, or lies behind one",
            where=Where(file=file),
            remedy="Replace the link by the file",
        )

    def _scan(self, directory: Path, parts: tuple[str, ...], *, inside: bool) -> None:
        """Note the classes of a directory; `inside` a tree, links are not followed."""
        with os.scandir(directory) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                link = entry.is_symlink()
                foreign = link and inside
                if not foreign and entry.is_dir():
                    self._directories.add(".".join((*parts, entry.name)))
                    self._scan(Path(entry.path), (*parts, entry.name), inside=inside or link)
                elif entry.name.endswith(_SUFFIXES):
                    stem = entry.name.rpartition(".")[0]
                    name = ".".join(parts if stem == "init" and parts else (*parts, stem))
                    self._files.setdefault(name, _File(Path(entry.path), foreign))
                    self.suspicious |= foreign or entry.stat().st_size > _SIZE
                elif foreign and entry.is_dir():
                    self._linked.append(".".join((*parts, entry.name)))
                    self.suspicious = True


def at_path(parameters: Mapping[str, Any], path: str) -> Iterator[object]:
    """Yield each value that `parameters` of one class have at a path such as `nginx.replicas`.

    If a part before its end has a value that is no mapping, such as a reference, it is this value.
    """
    keys = path.split(".")
    for length in range(1, len(keys) + 1):
        key = ".".join(keys[:length])
        rest = ".".join(keys[length:])
        for written in (key, f"~{key}", f"={key}"):
            if written in parameters:
                value = parameters[written]
                if rest and isinstance(value, Mapping):
                    yield from at_path(value, rest)
                else:
                    yield value


def key_text(key: object) -> str:
    """Return a key as JSON has it: the number 1 is `1`, the boolean `true`."""
    return key if isinstance(key, str) else json.dumps(key)


def _absolute(name: str, included_by: str) -> str:
    """Return the name of a class that may be relative: `.c` in `a.b` is `a.c`, `..c` is `c`."""
    climbed = len(name) - len(name.lstrip("."))
    if not climbed:
        return name
    parents = included_by.split(".")[:-climbed] if included_by else []
    return ".".join((*parents, name[climbed:]))


def _resolved(name: str, parameters: JsonObject) -> str:
    """Return the name of a class with the values of its references; unknown ones stay as they are."""
    for _ in range(_NESTED):
        found = _REFERENCE.search(name)
        if found is None:
            break
        path, _, default = found[1].partition("::")
        value: Any = parameters
        for key in path.split(":"):
            value = value.get(key) if isinstance(value, Mapping) else None
        value = default if value is None else value
        if value == "" or isinstance(value, Mapping | list):
            break
        name = name[: found.start()] + str(value) + name[found.end() :]
    return name


def _add(into: JsonObject, parameters: Mapping[str, Any]) -> None:
    """Merge parameters as far as the names of classes need it: mappings into mappings, all else replaces."""
    for written, value in parameters.items():
        key = written.removeprefix("~").removeprefix("=")
        if isinstance(value, Mapping):
            below = {} if written.startswith("~") else into.get(key)
            into[key] = dict(below) if isinstance(below, Mapping) else {}
            _add(into[key], value)
        else:
            into[key] = value


def _load(name: str, path: Path, file: str) -> MergedClass:
    where = Where(file=file)
    with path.open("rb") as opened:
        content = opened.read(_SIZE + 1)
    if len(content) > _SIZE:
        raise CatalogError("limit", f"it has more than {_SIZE // 1_000_000} MB", where=where, remedy="Split the class")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise CatalogError(
            "invalid", "it is not UTF-8", where=Where(file=file, line=line), remedy="Save the file as UTF-8"
        ) from None
    try:
        _check_depth(text)
        document = yaml.load(text, _Yaml12)  # noqa: S506 - a loader of ours, which makes plain values
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise CatalogError(
            "invalid", f"it is not YAML: {error.problem}", where=Where(file=file, line=line), remedy=_remedy(text)
        ) from None
    except yaml.YAMLError as error:
        raise CatalogError("invalid", f"it is not YAML: {escaped(str(error))}", where=where) from None
    document = {} if document is None else document
    if not isinstance(document, Mapping):
        raise CatalogError(
            "invalid", "a class is a mapping with the keys classes, applications, parameters", where=where
        )
    classes = document.get("classes") or ()
    parameters = document.get("parameters") or {}
    if not isinstance(classes, list | tuple) or not isinstance(parameters, Mapping):
        raise CatalogError("invalid", "`classes` is a list, and `parameters` a mapping", where=where)
    return MergedClass(name, file, tuple(map(str, classes)), dict(parameters))


def _remedy(text: str) -> str:
    return "Indent with spaces, not with tabs" if re.search(r"^ *\t", text, re.MULTILINE) else ""


def _check_depth(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEPTH:
            raise yaml.YAMLError(f"nested deeper than {_DEPTH} levels")


class _Yaml12(BoundedLoader):
    """Reads plain scalars as reclass-rs does: `yes` and `010` are strings, `0o17` is 15."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        return {key_text(key): value for key, value in super().construct_mapping(node, deep=True).items()}


def _integer(_: yaml.CSafeLoader, node: yaml.Node) -> int:
    if len(node.value) > NUMBER_LIMIT:
        raise yaml.constructor.ConstructorError(None, None, "a number that is too long", node.start_mark)
    return int(node.value, 0)


_INTEGER: Final = r"[-+]?(0|[1-9][0-9]*|0o[0-7]+|0x[0-9a-fA-F]+|0b[01]+)\Z"
_FLOAT: Final = (
    r"[-+]?((\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+|\.(inf|Inf|INF))\Z|\.(nan|NaN|NAN)\Z"
)
_Yaml12.yaml_implicit_resolvers = {}
_Yaml12.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile(r"<<\Z"), ["<"])
_Yaml12.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"(~|null|Null|NULL|)\Z"), ["~", "n", "N", ""])
_Yaml12.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"(true|True|TRUE|false|False|FALSE)\Z"), list("tTfF")
)
_Yaml12.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(_INTEGER), list("-+0123456789"))
_Yaml12.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(_FLOAT), list("-+.0123456789"))
_Yaml12.add_constructor("tag:yaml.org,2002:int", _integer)
