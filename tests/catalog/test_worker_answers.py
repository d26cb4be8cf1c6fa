"""Answers of a worker of which templates have taken hold are checked as bytes of others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kardinal.catalog.errors import CatalogError
from kardinal.catalog.values import InstanceFiles, Layout, Node, RenderJob
from tests.catalog.conftest import StartEngine
from tests.catalog.hostile_worker import hostile_worker

NOTHING = Layout({}, {})
ANSWER = """
while True:
    asked = request()
    if "inventory" in asked:
        answer({{}})
    else:
        {answer}
"""


async def rendered(start: StartEngine, answer: str) -> InstanceFiles:
    """Return what the engine takes of an answer, which is a statement of Python."""
    engine = start(program=hostile_worker(ANSWER.format(answer=answer)))
    made = await engine.render(NOTHING, [RenderJob("web", "web")], {})
    return made[0]


def files(*listed: object, **header: object) -> str:
    whole: Mapping[str, Any] = {"files": list(listed), "notices": [], "executable": [], **header}
    return f"answer({whole!r}, b'12345')"


async def test_files_arrive_with_their_bytes(start_engine: StartEngine) -> None:
    made = await rendered(start_engine, files(["a", 2], ["b/c", 3], executable=["a"], notices=["old"]))
    assert made == InstanceFiles("web", {"a": b"12", "b/c": b"345"}, ("old",), frozenset({"a"}))


@pytest.mark.parametrize("path", ["../a", "/a", "a/../b", "a//b", ".", "", "a\x00b", "a\nb", "a/"])
async def test_a_path_that_leaves_is_refused(start_engine: StartEngine, path: str) -> None:
    with pytest.raises(CatalogError):
        await rendered(start_engine, files([path, 5]))


@pytest.mark.parametrize(
    "answer",
    [
        files(["a", 4]),
        files(["a", 6]),
        files(["a", -1], ["b", 6]),
        files(["a", 2], ["a", 3]),
        files(["a", 5], executable=["b"]),
        files(["a", 5], notices=1),
        files("a"),
        "answer([])",
        "answer({})",
        "raw_answer(b'')",
        "raw_answer(b'not a message')",
        "raw_answer((1 << 40).to_bytes(8, 'big') + b'{}')",
        "answer({'error': 1})",
        "answer({'error': {'kind': 'other', 'message': '', 'remedy': '', 'where': {}}})",
    ],
)
async def test_a_malformed_answer_is_an_error(start_engine: StartEngine, answer: str) -> None:
    with pytest.raises(CatalogError) as failed:
        await rendered(start_engine, answer)
    assert failed.value.kind == "render"


@pytest.mark.parametrize(
    "answer",
    [
        "answer({'files': [[str(n), 0] for n in range(5001)], 'notices': [], 'executable': []})",
        "answer({'files': [['a', (8 << 20) + 1]], 'notices': [], 'executable': []}, bytes((8 << 20) + 1))",
        "answer({'files': [[str(n), 8 << 20] for n in range(9)], 'notices': [], 'executable': []}, bytes(72 << 20))",
        "raw_answer(b'x' * (200 << 20))",
        "raw_answer(b'[' * 1000)",
        "answer({'value': [[]] * 3_000_000})",
    ],
)
async def test_an_answer_that_is_too_large_is_a_limit(start_engine: StartEngine, answer: str) -> None:
    with pytest.raises(CatalogError) as failed:
        await rendered(start_engine, answer)
    assert failed.value.kind in ("limit", "render")


async def test_an_error_is_shown_without_control_characters(start_engine: StartEngine) -> None:
    error = {
        "kind": "render",
        "message": "\\x1b[31m" + "x" * 9000,
        "remedy": "\\x07",
        "where": {"file": "\\x1b", "line": 1},
    }
    with pytest.raises(CatalogError) as failed:
        await rendered(start_engine, f"answer({{'error': {error!r}}})".replace("\\\\x", "\\x"))
    assert str(failed.value).isprintable()
    assert len(str(failed.value)) < 5_000
    assert failed.value.where.line == 1


async def test_other_nodes_than_asked_for_are_an_error(start_engine: StartEngine) -> None:
    engine = start_engine(program=hostile_worker(ANSWER.format(answer="answer({'nodes': {'other': {}}})")))
    with pytest.raises(CatalogError):
        await engine.merge(NOTHING, {"n": Node((), {})}, tolerate_missing=False)
