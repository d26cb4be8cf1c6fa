"""The plane against a real server: the same sequences, and not one answer that differs."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest

from kardinal_local.plane import LocalPlane
from tests.local.contract.fuzz.runner import duel
from tests.local.contract.fuzz.server import serving
from tests.support.target import Target

SEQUENCES = 200


async def test_plane_and_real_server_answer_alike(
    target: Target,
    plane: LocalPlane,
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> None:
    if not target.real:
        pytest.skip("compares with a real server")
    seed = secrets.randbelow(10**6)
    async with (
        serving(plane.kubeconfig) as left,
        serving(request.getfixturevalue("real_kubeconfig")) as right,
        duel(left, right, seed=seed) as arena,
    ):
        report = await arena.run(range(SEQUENCES))
        differences = [await arena.shrink(found) for found in report.differences]
    record_property("fuzz", f"seed {seed}\n{report.histogram.shown()}")
    assert not differences, f"seed {seed}\n" + "\n".join(found.shown() for found in differences)
    assert report.histogram.conflicts >= 0.2
    assert report.histogram.refusals >= 0.2
    assert report.histogram.several_managers >= 0.3
