"""An engine in this process, for tests of what surrounds the engine: it merges, and writes what each node has."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import _gojsonnet

from kardinal.catalog.values import InstanceFiles, Layout, Merged, Node, RenderJob
from kardinal.catalog.worker import hierarchy

__all__ = ["InProcessEngine"]


class InProcessEngine:
    """Merges by reclass-rs; an instance is rendered into `<instance>/parameters.json` with its parameters."""

    async def merge(self, layout: Layout, nodes: Mapping[str, Node], *, tolerate_missing: bool) -> Mapping[str, Merged]:
        return await asyncio.to_thread(_merge, layout, nodes, tolerate_missing)

    async def evaluate(self, layout: Layout, file: str, variables: Mapping[str, str]) -> object:
        return await asyncio.to_thread(_evaluate, layout, file, variables)

    async def render(
        self, layout: Layout, jobs: Sequence[RenderJob], inventory: Mapping[str, Merged]
    ) -> Sequence[InstanceFiles]:
        rendered = []
        for job in jobs:
            content = json.dumps(inventory[job.instance].parameters, sort_keys=True).encode()
            rendered.append(InstanceFiles(job.instance, {f"{job.instance}/parameters.json": content}))
        return rendered

    async def origin(self, layout: Layout, node: Node, path: str) -> Sequence[tuple[str, object]]:
        return ()


def _merge(layout: Layout, nodes: Mapping[str, Node], tolerate_missing: bool) -> dict[str, Merged]:
    with tempfile.TemporaryDirectory() as made:
        root = Path(made)
        _lay_out(layout, root)
        (root / "inventory").mkdir(exist_ok=True)
        return hierarchy.merge(root, nodes, tolerate_missing=tolerate_missing)


def _evaluate(layout: Layout, file: str, variables: Mapping[str, str]) -> object:
    with tempfile.TemporaryDirectory() as made:
        _lay_out(layout, Path(made))
        return json.loads(_gojsonnet.evaluate_file(str(Path(made, file)), ext_vars=dict(variables)))


def _lay_out(layout: Layout, root: Path) -> None:
    for path, target in layout.links.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
    for path, content in layout.files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
