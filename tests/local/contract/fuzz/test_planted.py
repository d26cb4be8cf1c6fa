"""The fuzz finds what it is for: a behaviour of apply is broken on one of two planes.

Both are ours, so that this can be shown without a real server. What is broken is a pure function, and only while the
second of them is asked.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kardinal_local.plane import Authority, LocalPlane
from kardinal_local.plane.apply import typed
from kardinal_local.plane.apply.elements import element
from kardinal_local.plane.apply.types import Type
from tests.local.contract.fuzz.player import play
from tests.local.contract.fuzz.schemas import definitions
from tests.local.contract.fuzz.sequences import sequence
from tests.local.contract.fuzz.server import Server, serving

SEQUENCES = 500
SEED = 11
NAMESPACE = "fuzz"
CRDS = definitions(SEED, number=2, group="fuzz.kardinal.io")


@asynccontextmanager
async def _prepared(directory: Path, authority: Authority) -> AsyncIterator[Server]:
    plane = await LocalPlane.start(directory, authority=authority)
    try:
        async with serving(plane.kubeconfig) as server:
            await server.prepare(CRDS, namespace=NAMESPACE)
            yield server
    finally:
        await plane.stop()


def _appended(live: Any, applied: Any, declared: Type) -> Any:
    """Lists merged without regard to the order of the live one."""
    if not isinstance(live, list) or not applied:
        return applied or live
    named = {element(item, declared) for item in applied}
    return [*applied, *(item for item in live if element(item, declared) not in named)]


def _tolerated(*arguments: Any, problems: Callable[..., list[str]] = typed._list_problems) -> list[str]:
    return [problem for problem in problems(*arguments) if "duplicate entries" not in problem]


BUGS: dict[str, tuple[str, Callable[..., Any]]] = {
    "nothing is pruned": ("ssa.prune", lambda merged, *_, **__: merged),
    "nothing conflicts": ("ssa._refuse_conflicts", lambda *_: None),
    "new elements come first": ("merge._merge_lists", _appended),
    "an update takes nothing": ("managers.Claim.without", lambda claim, *_: claim),
    "every endpoint claims status": ("ssa.without_tops", lambda fields, _: fields),
    "an element may be there twice": ("typed._list_problems", _tolerated),
}


@pytest.mark.parametrize(("place", "broken"), BUGS.values(), ids=BUGS)
async def test_a_planted_bug_is_found(
    place: str, broken: Callable[..., Any], tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _prepared(tmp_path / "whole", authority) as whole, _prepared(tmp_path / "broken", authority) as other:
        for index in range(SEQUENCES):
            played = sequence(SEED, index, definitions=CRDS, namespace=NAMESPACE)
            expected = await play(whole, played)
            with monkeypatch.context() as patch:
                patch.setattr(f"kardinal_local.plane.apply.{place}", broken)
                found = await play(other, played)
            if any(one.differences(another) for one, another in zip(expected, found, strict=True)):
                return
    pytest.fail(f"{SEQUENCES} sequences did not show it")
