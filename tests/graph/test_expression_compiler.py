"""Programs are there before they are needed, parsed here or in another process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from kardinal import cel
from kardinal_controller.expressions import ExpressionCompiler
from kardinal_controller.expressions.compiler import INLINE_EXPRESSION

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)


@pytest.fixture
async def compiler() -> AsyncIterator[ExpressionCompiler]:
    made = ExpressionCompiler()
    yield made
    await made.stop()


def long(text: str) -> str:
    """Return an expression that is not parsed on the event loop."""
    return text + " && true" * INLINE_EXPRESSION


async def test_long_expressions_come_from_another_process_as_if_they_had_been_parsed_here(
    compiler: ExpressionCompiler,
) -> None:
    source = long("a.l[0].x == 'ä' && {'k': [1, 2.5, null]}.k.exists(v, v == b.?c.orValue(1)) && a.b > now()")[:4000]
    source = source.rpartition(" &&")[0]
    await compiler.prepare([source, "1 + 1"])
    assert cel.is_known(source)
    assert cel.is_known("1 + 1")
    assert cel.syntax_of(source) == cel.lower(source)

    # A wrong one is told when its program is asked for.
    wrong = "[" + "1, " * INLINE_EXPRESSION + "nope()]"
    await compiler.prepare([wrong, "wrong("])
    assert cel.is_known(wrong)
    with pytest.raises(cel.CompileError, match="unknown function `nope`"):
        cel.compile(wrong)
    with pytest.raises(cel.CompileError, match="ends too early"):
        cel.compile("wrong(")

    # Requests at the same time are answered each.
    sources = [f"[{number}" + ", 1" * INLINE_EXPRESSION + "].size()" for number in range(5)]
    await asyncio.gather(*(compiler.prepare([source]) for source in sources))
    outcomes = {cel.compile(source).evaluate({}, now=NOW) for source in sources if cel.is_known(source)}
    assert outcomes == {cel.Value(INLINE_EXPRESSION + 1)}


async def test_cancelled_request_leaves_no_answer_for_the_next(
    compiler: ExpressionCompiler,
) -> None:
    first, second = (f"[{text}" + ", 1" * INLINE_EXPRESSION + "]" for text in ("2", "3"))
    request = asyncio.create_task(compiler.prepare([first]))
    await asyncio.sleep(0)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    await compiler.prepare([second])
    assert cel.syntax_of(second) == cel.lower(second)

    sources = [f'"{number:04}{"x" * 4000}" == "x"' for number in range(50)]
    for _ in range(2):
        found = await compiler.prepare([*sources, "wrong("])
        assert [type(found[source]) for source in sources] == [cel.Program] * 50
        assert isinstance(found["wrong("], cel.CompileError)
    assert not all(map(cel.is_known, sources))
