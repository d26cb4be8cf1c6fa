"""Every example is accepted as it is written, and the words around it are true."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.docs.cli_reference import reference
from tests.support.strict import apply_strictly
from tests.support.world import World

ROOT = Path(__file__).parents[2]
INIT_FILE = ROOT / "examples" / "kardinal.yaml"


def documents(text: str | bytes) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(text) if document is not None]


EXAMPLES = {path.name: documents(path.read_bytes()) for path in (ROOT / "examples").glob("*.yaml") if path != INIT_FILE}


@pytest.mark.parametrize("example", sorted(EXAMPLES))
async def test_an_example_is_accepted_without_an_unknown_field(world: World, example: str) -> None:
    await apply_strictly(world.server.kubeconfig, EXAMPLES[example])


async def test_what_init_makes_of_the_example_file_is_accepted(world: World) -> None:
    kardinal = Path(sys.executable).with_name("kardinal")
    options = (
        "--kubeconfig",
        str(world.server.kubeconfig),
        "-f",
        str(INIT_FILE),
        "-o",
        "yaml",
    )
    process = await asyncio.create_subprocess_exec(
        kardinal, "init", *options, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    made = documents(out)
    assert {obj["kind"] for obj in made} >= {"Pipeline"}
    await apply_strictly(world.server.kubeconfig, made)


def test_the_reference_of_the_command_line_is_current() -> None:
    assert (ROOT / "docs" / "cli.md").read_text() == reference(), "run: make docs"
