"""Every metric that the programs serve stands in docs/metrics.md, and nothing else does."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.programs import start_controller
from tests.support.world import World

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


async def test_the_page_lists_what_is_served(world: World) -> None:
    controller = await start_controller(world)
    families = list(controller.manager.metrics.collect())
    served = {f"{family.name}_total" if family.type == "counter" else family.name for family in families}
    rows = "\n".join(line for line in PAGE.read_text().splitlines() if line.startswith("| `"))
    listed = {name for row in rows.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert listed == served
