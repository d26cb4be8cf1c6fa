"""Every difference that was ever found stays found: the plane against the answers a real server gave."""

from __future__ import annotations

from pathlib import Path

import pytest

from kardinal_local.plane import LocalPlane
from tests.local.contract.fuzz.corpus import DIRECTORY, kept
from tests.local.contract.fuzz.player import play
from tests.local.contract.fuzz.server import serving


@pytest.mark.parametrize("path", sorted(DIRECTORY.glob("*.json")), ids=lambda path: path.stem)
async def test_the_plane_answers_a_kept_sequence_as_the_real_server_did(path: Path, plane: LocalPlane) -> None:
    played, answers = kept(path)
    namespace = played.collection.split("/")[-2]
    async with serving(plane.kubeconfig) as server:
        await server.prepare([played.definition] if played.definition else [], namespace=namespace)
        outcomes = await play(server, played)
    for step, answer, outcome in zip(played.steps, answers, outcomes, strict=True):
        assert outcome.apart(answer) == [], step
