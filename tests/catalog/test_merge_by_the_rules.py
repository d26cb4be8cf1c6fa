"""Generated hierarchies are merged as the rules say: with reclass-rs, and with a small merger that knows nothing of it.

`make test-catalog-merge` merges 10,000 of them, beside the 1,000 of every run.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kardinal.catalog.errors import CatalogError
from kardinal.catalog.values import Merged, Node
from kardinal.catalog.worker.hierarchy import merge
from tests.catalog.layouts import lay_out
from tests.catalog.reference_merger import Refused, merge_by_the_rules

BATCHES: Final = 10
HIERARCHIES: Final = int(os.environ.get("KARDINAL_HIERARCHIES", "1000"))

_KEYS: Final = ("m0", "m1", "l0", "l1", "s0", "s1", "n0", "t0")
_BASE: Final[dict[str, Any]] = {
    **{"m": {"m": {"s0": "y"}, "l": ["${base:s}", 1], "s": "z-${base:n}", "n": 2, "t": "true"}},
    **{"l": [{"s0": "x"}, "${base:m:s}"], "s": "s", "n": 1, "t": "${base:s}-t"},
}
"""Values for references, so that most of them lead somewhere."""
_REASONS: Final = {
    "class": "there is no class",
    "loop": "in a loop",
    "lookup": "leads through a value",
    "reference": "leads to no parameter",
    "constant": "sets it again",
    "kind": "cannot be merged over",
    "syntax": "is no reference",
}


class _Generator:
    """Makes a hierarchy of a seed. `m*` are mostly mappings, `l*` lists, `n*` numbers, all else texts."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def hierarchy(self) -> tuple[dict[str, dict[str, Any]], Node]:
        count = self._random.randint(1, 6)
        names = [f"{self._random.choice(('', 'a.', 'a.b.'))}c{number}" for number in range(count)]
        classes = {name: self._class(names[at + 1 :], name) for at, name in enumerate(names)}
        included = ["facts", *self._random.sample(names, self._random.randint(1, count))]
        if self._chance(0.3):
            included.append("${facts:next}")
        classes["facts"] = {"parameters": {"facts": {"next": self._random.choice(names), "key": "base"}, "base": _BASE}}
        return classes, Node(tuple(included), self._mapping(2))

    def _class(self, later: list[str], name: str) -> dict[str, Any]:
        included = self._random.sample(later, self._random.randint(0, min(2, len(later))))
        applications = [self._random.choice(("", "", "", "~")) + self._random.choice("xyz") for _ in range(3)]
        return {
            "classes": [self._relative(other, name) for other in included],
            "applications": applications[: self._random.randint(0, 3)],
            "parameters": self._mapping(3),
        }

    def _relative(self, other: str, name: str) -> str:
        if self._chance(0.02):
            return "none"
        here, _, _ = name.rpartition(".")
        there, _, last = other.rpartition(".")
        return f".{last}" if here == there and self._chance(0.5) else other

    def _mapping(self, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key in self._random.sample(_KEYS, self._random.randint(0, 4)):
            prefix = self._random.choices(("", "~", "="), (60, 4, 0.3))[0]
            made[prefix + key] = self._value(key, depth)
        return made

    def _value(self, key: str, depth: int) -> Any:
        if self._chance(0.04):
            return None
        if self._chance(0.02):
            key = self._random.choice(_KEYS)
        if key[0] in "ml" and (depth == 0 or self._chance(0.15)):
            return f"${{{self._path(key[0])}}}"
        if key[0] == "m":
            return self._mapping(depth - 1)
        if key[0] == "l":
            return [self._value(self._random.choice(_KEYS), 0) for _ in range(self._random.randint(0, 3))]
        return self._random.randint(0, 9) if key[0] == "n" else self._text()

    def _text(self) -> str:
        return "".join(self._random.choices(_TEXTS, _WEIGHTS)[0](self) for _ in range(self._random.randint(1, 3)))

    def _path(self, kind: str) -> str:
        if self._chance(0.02):
            return "none:such"
        if self._chance(0.9):
            return self._random.choice((f"base:{kind}", f"base:m:{kind}", f"${{facts:key}}:{kind}"))
        last = kind + self._random.choice("01" if kind in "mls" else "0")
        return self._random.choice((last, f"m0:{last}", f"m1:{last}"))

    def _chance(self, part: float) -> bool:
        return self._random.random() < part


_TEXTS: Final = (
    lambda _: "x",
    lambda made: f"${{{made._path(made._random.choice('snt'))}}}",
    lambda made: f"${{{made._path(made._random.choice('mlsn'))}::{made._random.choice(('d', '1', 'true', ''))}}}",
    lambda _: r"\${s0}",
    lambda made: rf"\\${{{made._path('n')}}}",
    lambda _: "$ } :",
)
_WEIGHTS: Final = (40, 10, 10, 2, 1, 5)


def outcome(merged: Merged) -> dict[str, Any]:
    parameters = {key: value for key, value in merged.parameters.items() if key != "_reclass_"}
    return {
        "parameters": parameters,
        "applications": merged.applications,
    }


def merged_here(root: Path, classes: dict[str, dict[str, Any]], node: Node) -> object:
    """Return the parameters and applications, or the sentence of the error."""
    files = {f"{name.replace('.', '/')}.yml": yaml.safe_dump(document) for name, document in classes.items()}
    try:
        return outcome(merge(lay_out(root, dict(files)), {"n": node}, tolerate_missing=False)["n"])
    except CatalogError as error:
        return error.message


def merged_by_the_rules(classes: dict[str, dict[str, Any]], node: Node) -> tuple[object, bool]:
    """Return the same by the rules, and whether it is doubtful; an error is a part of the sentence."""
    try:
        merged, doubtful = merge_by_the_rules(classes, node)
        return outcome(merged), doubtful
    except Refused as refused:
        return _REASONS[str(refused)], refused.doubtful


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_generated_hierarchy_is_merged_as_the_rules_say(tmp_path: Path, batch: int) -> None:
    different = {}
    merged = 0
    not_compared = 0
    for seed in range(batch, HIERARCHIES, BATCHES):
        classes, node = _Generator(seed).hierarchy()
        expected, doubtful = merged_by_the_rules(classes, node)
        found = merged_here(tmp_path / str(seed), classes, node)
        # Of several errors, either may be told.
        if isinstance(found, str) and isinstance(expected, str):
            continue
        if found == expected:
            merged += 1
        elif doubtful:
            not_compared += 1
        else:
            different[seed] = (expected, found)
    assert different == {}
    assert merged > HIERARCHIES / BATCHES / 2
    assert not_compared < HIERARCHIES / BATCHES / 20


@pytest.mark.parametrize("reason", sorted(_REASONS))
def test_an_error_by_the_rules_is_this_error(tmp_path: Path, reason: str) -> None:
    wrong: dict[str, dict[str, Any]] = {
        "class": {"classes": ["none"]},
        "loop": {"parameters": {"a": "${b}", "b": "${a}"}},
        "lookup": {"parameters": {"a": 1, "b": "${a:x}"}},
        "reference": {"parameters": {"a": "${b}"}},
        "constant": {"parameters": {"=k": 1}},
        "kind": {"parameters": {"k": {}}},
        "syntax": {"parameters": {"a": "${b"}},
    }
    node = Node(("c",), {"k": 1})
    assert merged_by_the_rules({"c": wrong[reason]}, node)[0] == _REASONS[reason]
    assert _REASONS[reason] in str(merged_here(tmp_path, {"c": wrong[reason]}, node))
