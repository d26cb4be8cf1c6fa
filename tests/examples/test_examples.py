"""Every example is accepted as it is written, and the words around it are true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.docs.cli_reference import reference
from tests.cli.conftest import Cli
from tests.cli.in_process import cli
from tests.support.strict import apply_strictly
from tests.support.world import World

__all__ = ["cli"]

ROOT = Path(__file__).parents[2]
INIT_FILE = ROOT / "examples" / "kardinal.yaml"


def documents(text: str | bytes) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(text) if document is not None]


EXAMPLES = {path.name: documents(path.read_bytes()) for path in (ROOT / "examples").glob("*.yaml") if path != INIT_FILE}


@pytest.mark.parametrize("example", sorted(EXAMPLES))
async def test_an_example_is_accepted_without_an_unknown_field(world: World, example: str) -> None:
    await apply_strictly(world.server.kubeconfig, EXAMPLES[example])


async def test_pipeline_from_the_example_file_is_accepted(world: World, cli: Cli) -> None:
    out = await cli("init", "-f", str(INIT_FILE), "-o", "yaml")
    made = documents(out)
    assert {obj["kind"] for obj in made} >= {"Pipeline"}
    await apply_strictly(world.server.kubeconfig, made)


def test_the_reference_of_the_command_line_is_current() -> None:
    assert (ROOT / "docs" / "cli.md").read_text() == reference(), "run: make docs"
