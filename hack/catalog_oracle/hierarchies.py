"""Random hierarchies of classes, the same for the same seed.

A hierarchy is plain data: the text of each class by path, `global/common.yml`. Its root is class `global.commodore`,
and most of it lies below parameter `show`. It has mappings in mappings, lists, nulls, keys with `~` and `=`,
references as whole values, inside text and in lists, with defaults, to mappings that later classes extend, and nested
ones; applications with removals; absolute, relative and referring names of classes; `init.yml` and `.yaml`.

The shape of the parameters is drawn first, and each class sets a part of it, so that most hierarchies merge. In a few,
a class sets another kind of value, or overwrites a constant, and both sides have to refuse them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import yaml

from hack.catalog_oracle.fixtures import Case

__all__ = ["as_case", "hierarchy"]

_CLASSES = {
    "global.common": "global/common.yml",
    "global.level": "global/level/init.yml",
    "global.level.one": "global/level/one.yml",
    "global.level.two": "global/level/two.yaml",
    "global.deep.er.still": "global/deep/er/still.yml",
    "global.deep.er": "global/deep/er.yml",
    "t-acme.common": "t-acme/common.yml",
    "t-acme.sites.init-not": "t-acme/sites/init-not.yml",
    "t-acme.sites": "t-acme/sites/init.yaml",
    "t-acme.c-one": "t-acme/c-one.yml",
}
"""Names and files of the classes; one includes only those before it, so that none includes itself."""
_WORDS = ("alpha", "beta", "gamma", "delta", "yes", "010", "1", "null", "two words", "a: b", "", "é", "one\ntwo", "~x")
_APPLICATIONS = ("one", "two", "three")
_DEPTH = 3

_Path = tuple[str, ...]


@dataclass(frozen=True)
class _Shape:
    """The shape of the parameters: mappings hold shapes, all else is `list` or `scalar`."""

    kind: str
    children: dict[str, _Shape] = field(default_factory=dict)

    def paths(self, *above: str) -> Iterator[tuple[_Path, str]]:
        for key, child in self.children.items():
            yield (*above, key), child.kind
            yield from child.paths(*above, key)


def hierarchy(seed: int) -> dict[str, str]:
    """Return the texts of the classes by path."""
    return _Generator(Random(seed)).classes()  # noqa: S311 (no secret comes of it)


def as_case(seed: int, directory: Path) -> Case:
    """Write the hierarchy, and the components that its applications are, as a case of this directory, which is made."""
    files = hierarchy(seed)
    root = yaml.safe_load(files["global/commodore.yml"])
    files["global/commodore.yml"] = _text(root | {"classes": ["global.base", "global.components", *root["classes"]]})
    specification = {name: {"url": "${ROOT}/apps.git", "version": "main", "path": name} for name in _APPLICATIONS}
    files["global/components.yml"] = _text({"parameters": {"components": specification}})
    for name in _APPLICATIONS:
        copied = {"input_type": "copy", "input_paths": [f"dependencies/{name}/{name}/class"], "output_path": name}
        files[f"apps/{name}/class/{name}.yml"] = _text({"parameters": {"kapitan": {"compile": [copied]}}})
        files[f"apps/{name}/class/defaults.yml"] = _text({"parameters": {name: {}}})
    for path, text in files.items():
        file = directory / "repositories" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return Case(directory)


class _Generator:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._shape = self._draw_shape(_DEPTH)
        # Values refer to what comes before them, so that only a few make a loop.
        self._paths = list(self._shape.paths("show"))

    def classes(self) -> dict[str, str]:
        names = list(_CLASSES)
        # A reference in a name may mean either level.
        always = {"global.level.one", "global.level.two", names[-1]}
        used = [name for name in names if name in always or self._random.random() < 0.75]
        included = {name: self._included(used[: used.index(name)]) for name in used}
        # The first class sets everything, so that few references lead nowhere.
        base = self._mapping(self._shape, ("show",), share=1.0, plain=True)
        values = {"pick": self._random.choice(["one", "two"]), "choices": {"one": "first", "two": 2}, "show": base}
        texts = {
            "global/commodore.yml": _text({"classes": ["global.values", *self._included(used[:-1]), used[-1]]}),
            "global/values.yml": _text({"applications": ["show"], "parameters": values}),
        }
        for name in used:
            content: dict[str, Any] = {}
            if included[name]:
                content["classes"] = [self._named(other, name) for other in included[name]]
            if self._random.random() < 0.5:
                content["applications"] = self._applications()
            content["parameters"] = {"show": self._mapping(self._shape, ("show",), share=0.5, plain=False)}
            texts[_CLASSES[name]] = _text(content)
        return texts

    def _draw_shape(self, depth: int) -> _Shape:
        children = {}
        for number in range(self._random.randint(2, 4)):
            key = f"{self._random.choice(['map', 'key', 'a-b', 'c_d', 'x.y'])}{number}"
            kind = self._random.choice(["mapping", "mapping", "list", "scalar", "scalar"]) if depth else "scalar"
            children[key] = self._draw_shape(depth - 1) if kind == "mapping" else _Shape(kind)
        return _Shape("mapping", children)

    def _included(self, candidates: list[str]) -> list[str]:
        chosen = [name for name in candidates if self._random.random() < 0.35]
        self._random.shuffle(chosen)
        return chosen

    def _named(self, name: str, by: str) -> str:
        """Return how class `by` writes the name: absolute, relative, or with a reference."""
        level = "global.level."
        # None of these refers to a level: it could include itself.
        if name.startswith(level) and not by.startswith(level) and self._random.random() < 0.5:
            return "global.level.${pick}"
        ours = by.split(".")
        theirs = name.split(".")
        common = 0
        while common < min(len(ours), len(theirs)) - 1 and ours[common] == theirs[common]:
            common += 1
        if common and self._random.random() < 0.6:
            return "." * (len(ours) - common) + ".".join(theirs[common:])
        return name

    def _applications(self) -> list[str]:
        chosen = self._random.sample(_APPLICATIONS, self._random.randint(1, 3))
        return [f"~{name}" if self._random.random() < 0.3 else name for name in chosen]

    def _mapping(self, shape: _Shape, path: _Path, *, share: float, plain: bool) -> dict[str, Any]:
        found = {}
        for key, child in shape.children.items():
            if self._random.random() < share:
                mark = "" if plain else self._mark()
                found[mark + key] = self._value(child, (*path, key), share=share, plain=plain)
        return found

    def _mark(self) -> str:
        drawn = self._random.random()
        return "~" if drawn < 0.08 else "=" if drawn < 0.084 else ""

    def _value(self, shape: _Shape, path: _Path, *, share: float, plain: bool) -> Any:
        if not plain:
            drawn = self._random.random()
            if drawn < 0.06:
                return None
            if drawn < 0.064:
                shape = _Shape(self._random.choice(["list", "scalar"]))
            elif drawn < 0.2 and (reference := self._reference(path, shape.kind)) is not None:
                return reference
        if shape.kind == "mapping":
            return self._mapping(shape, path, share=share, plain=plain)
        if shape.kind == "list":
            return [self._item(path, plain=plain) for _ in range(self._random.randint(0, 3))]
        return self._scalar(path, plain=plain)

    def _item(self, path: _Path, *, plain: bool) -> Any:
        drawn = self._random.random()
        if drawn < 0.2:
            return {"name": self._scalar(path, plain=plain), "numbers": [1, self._random.randint(2, 9)]}
        return [self._scalar(path, plain=plain)] if drawn < 0.3 else self._scalar(path, plain=plain)

    def _scalar(self, path: _Path, *, plain: bool) -> Any:
        kinds = ["word", "word", "number", "float", "flag"] + (
            [] if plain else ["text", "default", "escaped", "nested"]
        )
        match self._random.choice(kinds):
            case "word":
                return self._random.choice(_WORDS)
            case "number":
                return self._random.randint(-5, 100000)
            case "float":
                return self._random.choice([1.5, -0.25, 2.0, 1e10])
            case "flag":
                return self._random.random() < 0.5
            case "text":
                reference = self._reference(path, "scalar")
                return f"is {reference}, ${{pick}} and $" if reference is not None else "${pick}-text"
            case "default":
                return self._random.choice(
                    ["${show:not:there::fallback}", "${nope::5}", "x-${nope::}-y", "${pick::no}"]
                )
            case "escaped":
                return self._random.choice(["\\${pick}", "\\\\${pick}", "a \\${b} and ${pick}", "$pick {pick}"])
        return "${choices:${pick}}"

    def _reference(self, path: _Path, kind: str) -> str | None:
        position = next(index for index, (found, _) in enumerate(self._paths) if found == path)
        earlier = [found for found, of in self._paths[:position] if of == kind and found != path[: len(found)]]
        return f"${{{':'.join(self._random.choice(earlier))}}}" if earlier else None


def _text(content: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True)
