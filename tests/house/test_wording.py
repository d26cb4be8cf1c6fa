"""A sentence of the product stands in one test, so that another word in it breaks one test and not a dozen.

The test of the function that makes a message has its text. All others assert the reason, the names and numbers, or a
few decisive words, or they call that function.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("kardinal", "kardinal_agent", "kardinal_controller", "kardinal_local", "kardinal_supplychain")
FROZEN = ("kardinal_local/plane/", "tests/local/plane/", "tests/local/contract/")
"""The API server of the local plane and its suites get fixes only, and are left as they are."""

LENGTH = 6
"""So many words in a row are a sentence; fewer are decisive words, as a reader needs them in a test."""

TABLES = "tests/health/*_cases.py"
"""The states of GitOps tools, which are compared with the guides: these tables count as one place."""

Words = tuple[str, ...]

_ANY = "*"
"""A word that has a value in it, as `{name}:` has in an f-string."""
_OPTION = "-"
"""The beginning of a word of a command, which is no wording: tests assert a remedy by its command."""


def shared(product: Mapping[str, str], tests: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the sentences of `product` that several functions of `tests` have, and those; both are sources by path."""
    known = {words for source in product.values() for _, text in _texts(ast.parse(source)) for words in _known(text)}
    places: dict[Words, dict[str, str]] = defaultdict(dict)
    for path, source in tests.items():
        for unit in _units(ast.parse(source)):
            name = f"{path}::{unit.name}" if isinstance(unit, ast.FunctionDef | ast.AsyncFunctionDef) else path
            place = TABLES if Path(path).match(TABLES) else name
            for line, text in _texts(unit):
                for words in _windows(text):
                    for each in filter(known.__contains__, _generalized(words)):
                        places[each].setdefault(place, f"{path}:{line}")
    return {" ".join(words): sorted(found.values()) for words, found in places.items() if len(found) > 1}


def _units(tree: ast.Module) -> Iterator[ast.stmt]:
    for statement in tree.body:
        yield from statement.body if isinstance(statement, ast.ClassDef) else [statement]


def _texts(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each string below `node`, with `*` for a value; docstrings are left out."""
    match node:
        case ast.Expr(value=ast.Constant()):
            return
        case ast.Constant(value=str(text), lineno=line):
            yield line, text
        case ast.JoinedStr(values=parts, lineno=line):
            yield line, "".join(str(part.value) if isinstance(part, ast.Constant) else _ANY for part in parts)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _texts(child)


def _windows(text: str) -> Iterator[Words]:
    found = (word.strip(".,;:()`'\"?!\\") for word in text.split())
    words = [_ANY if _ANY in word else word for word in found if word]
    yield from (tuple(words[start : start + LENGTH]) for start in range(len(words) - LENGTH + 1))


def _known(text: str) -> Iterator[Words]:
    """Yield the sentences in a text of the product: words without a command, and inside of them one value at most."""
    for words in _windows(text):
        plain = sum(word.isalpha() for word in words)
        command = any(word.startswith(_OPTION) for word in words)
        if plain >= LENGTH - 1 and _ANY not in (words[0], words[-1]) and not command:
            yield words


def _generalized(words: Words) -> Iterator[Words]:
    """Yield words as the product may have them: as they are, and with a value in the place of one of them."""
    yield words
    for place in range(1, LENGTH - 1):
        yield (*words[:place], _ANY, *words[place + 1 :])


def _sources(rooms: Sequence[str]) -> dict[str, str]:
    paths = sorted(path for room in rooms for path in (ROOT / room).rglob("*.py"))
    names = {path.relative_to(ROOT).as_posix(): path for path in paths}
    return {name: path.read_text() for name, path in names.items() if not name.startswith(FROZEN)}


def test_sentences_of_the_product_stand_in_one_test_each() -> None:
    found = shared(_sources(PRODUCT), _sources(["tests"]))
    told = sorted(f"{', '.join(places)}: {sentence}" for sentence, places in found.items())
    assert not told, "assert the reason, names or fewer words in all tests but one:\n" + "\n".join(told)


SOURCE = {
    "kardinal/changes.py": """
raise Failed(f"the change of {name} was not made in time: kardinal retry {bundle} --env {environment} -n {namespace}")
"""
}


@pytest.mark.parametrize(
    ("asserted", "found"),
    [
        ("x == 'the change of app was not made in time'", True),
        ("x == f'the change of {app} was not made in time'", True),
        ("'app: change of app was not made' in x", True),
        ("'app was not made in time' in x", False),
        ("x == 'the change was not made in time'", False),
        ("x == 'kardinal retry app-1 --env prod -n team'", False),
    ],
)
def test_sentence_in_two_functions_is_found(asserted: str, found: bool) -> None:
    test = f"def test_it():\n    assert {asserted}\n"
    assert shared(SOURCE, {"tests/test_a.py": test}) == {}
    assert bool(shared(SOURCE, {"tests/test_a.py": test, "tests/test_b.py": test})) is found


def test_tables_of_guides_are_one_place() -> None:
    table = "CASES = ['the change of app was not made in time']"
    sources = {"tests/health/flux_cases.py": table, "tests/health/argocd_cases.py": table}
    assert shared(SOURCE, sources) == {}
