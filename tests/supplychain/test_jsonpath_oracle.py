"""Our JSONPath against client-go's, on generated objects and paths; what differs is written down here, with the reason.

It needs the program of `hack/carto_oracle`, which Go builds in a minute: `python -m hack.carto_oracle.assets`.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

from hack.carto_oracle.assets import CARTO_ORACLE, answers
from hack.kube.assets import built
from kardinal_supplychain.jsonpath import PathError, parse_path

if not built(CARTO_ORACLE):
    pytest.skip("needs client-go: `python -m hack.carto_oracle.assets`, with Go >= 1.26", allow_module_level=True)

PAIRS = 2_000
DIFFERENCES = {
    "a path is one expression, without loops": (re.compile(r"\brange\b"), {"a": [1]}, "a range"),
    "of a text, `*` finds nothing; client-go finds its bytes": (re.compile(r"\*"), {"a": "b"}, "a.*"),
    "a path ends with its brace; client-go reads on": (re.compile(r"[{}]"), {"a": 1, "b": 2}, "a}{.b"),
}
"""The reasons for which an answer differs: the paths that they are for, and an object and a path of which it does."""

KEYS = ("a", "b", "c", "x-y", "d/e", "k.l", "type", "status", "items", "0")
SCALARS = (None, True, False, 0, 1, -7, 2**60 + 1, 1.5, "", "a", "Ready", "True", "ü", "a b")


def value(chance: random.Random, depth: int) -> Any:
    kind = chance.random()
    if depth == 0 or kind < 0.3:
        return chance.choice(SCALARS)
    if kind < 0.7:
        return {key: value(chance, depth - 1) for key in chance.sample(KEYS, chance.randint(0, 4))}
    return [value(chance, depth - 1) for _ in range(chance.randint(0, 4))]


def step(chance: random.Random) -> str:
    key = chance.choice(KEYS).replace(".", r"\.")
    number = chance.randint(-3, 4)
    side = chance.choice((f"@.{key}", "@", f"@.{key}[0]", "@..a"))
    literal = chance.choice(("1", "-7", "1.5", '"Ready"', "'a'", "true", "@.b", "@", '"a b"', "foo"))
    operator = chance.choice(("==", "!=", "<", ">", "<=", ">=", "=", "=~"))
    space = chance.choice(("", "", " "))
    return chance.choice(
        (
            *(f".{key}",) * 4,
            *(f"['{key}']", f"[{number}]", f"[{number}:{chance.randint(-3, 4)}]", f"[::{chance.randint(-1, 3)}]"),
            *("[*]", ".*", "..", f"..{key}", "[]", "[:]", f"['{key}','b']", f"[{number}, 0]", "[-]", "[1:]"),
            *(f"[?({side})]", f"[?({side}{space}{operator}{space}{literal})]", f"[?({side}=={literal})].status"),
            *(" ", "@", "$", '"text"', "5", "-1.5", "+.5", "1.2.3", "true", "foo", "\\", "(", "=", "]", '"\\u00e9"'),
        )
    )


def path(chance: random.Random, obj: Any) -> str:
    """Return a path, most of which leads somewhere in the object, and some of which are broken."""
    steps = []
    while isinstance(obj, dict | list) and obj and chance.random() < 0.8:
        if isinstance(obj, dict):
            key = chance.choice(list(obj))
            steps.append(chance.choice((f".{key}", f"['{key}']")).replace("k.l", r"k\.l"))
            obj = obj[key]
        else:
            index = chance.randrange(len(obj))
            steps.append(f"[{index}]")
            obj = obj[index]
    for _ in range(chance.choice((0, 0, 0, 0, 0, 1, 1, 1, 2))):
        steps.insert(chance.randint(max(len(steps) - 1, 0), len(steps)), step(chance))
    text = "".join(steps) or ".a"
    if chance.random() < 0.05:
        cut = chance.randrange(len(text))
        text = text[:cut] + text[cut + 1 :]
    return text or ".b"


def pairs() -> list[tuple[Any, str]]:
    chance = random.Random(20260)
    made = list[tuple[Any, str]]()
    while len(made) < PAIRS:
        obj = {key: value(chance, 4) for key in chance.sample(KEYS, 4)}
        made.append((obj, path(chance, obj)))
    return made


def ours(obj: Any, text: str) -> list[str] | None:
    """Return the results as sorted JSON, because client-go visits the fields of an object in any order; None fails."""
    try:
        results = parse_path(text).find(obj)
    except PathError as error:
        return [] if str(error).startswith("jsonpath returned empty list") else None
    return sorted(json.dumps(result, sort_keys=True) for result in results)


def theirs(answer: dict[str, Any]) -> list[str] | None:
    if error := answer.get("error"):
        missing = error.endswith("is not found") or "out of bounds" in error
        return [] if missing else None
    return sorted(json.dumps(result, sort_keys=True) for result in answer["results"])


def test_generated_paths_find_what_client_go_finds() -> None:
    asked = pairs()
    given = answers(asked)
    assert len(given) == PAIRS
    different = [
        (text, mine, theirs(answer), answer.get("error"), json.dumps(obj))
        for (obj, text), answer in zip(asked, given, strict=True)
        if (mine := ours(obj, text)) != theirs(answer)
    ]
    excused = [row for row in different if any(pattern.search(row[0]) for pattern, _, _ in DIFFERENCES.values())]
    assert [row for row in different if row not in excused] == []
    assert len(excused) <= 10
    assert sum(bool(theirs(answer)) for answer in given) > PAIRS / 4, "too few of the paths lead somewhere"


@pytest.mark.parametrize("reason", DIFFERENCES)
def test_a_difference_that_is_written_down_is_there(reason: str) -> None:
    pattern, obj, text = DIFFERENCES[reason]
    (answer,) = answers([(obj, text)])
    assert pattern.search(text)
    assert ours(obj, text) != theirs(answer)
