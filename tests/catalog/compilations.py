"""A directory of a compilation with one component, for tests of what is rendered in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kardinal.catalog.values import InstanceFiles, Merged, RenderJob
from kardinal.catalog.worker.rendering import render_instance

__all__ = ["Compilation", "jsonnet_input"]


def jsonnet_input(path: str = "main.jsonnet", **options: Any) -> dict[str, Any]:
    """Return an input of the component `web`."""
    return {
        "input_type": "jsonnet",
        "input_paths": [f"dependencies/web/{path}"],
        "output_path": "web",
        **options,
    }


class Compilation:
    """The layout `root` with links to trees below `trees`, as the parent of the worker makes it."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "compilation"
        self.trees = directory / "trees"
        self.root.mkdir()
        self.trees.mkdir()

    def tree(self, place: str, files: Mapping[str, str | bytes]) -> Path:
        """Make a tree with files, and link it at a place of the layout."""
        tree = self.trees / place.replace("/", "-")
        tree.mkdir()
        for name, content in files.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        link = self.root / place
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(tree)
        return tree

    def component(self, **files: str) -> Path:
        """Make the component `web`; `main_jsonnet` is the file main.jsonnet."""
        return self.tree("dependencies/web", {name.replace("_", "."): text for name, text in files.items()})

    def render(
        self,
        *inputs: Mapping[str, Any],
        parameters: Mapping[str, Any] | None = None,
        instance: str = "web",
        filters: object = None,
        references: Mapping[str, str] | None = None,
        others: Mapping[str, Merged] | None = None,
    ) -> InstanceFiles:
        """Render the component `web` with these inputs."""
        kapitan = {"compile": list(inputs), "vars": {"target": instance}}
        node = Merged(
            applications=("web",),
            classes=("params.cluster", "components.web"),
            parameters={"_base_directory": "dependencies/web", "kapitan": kapitan, **(parameters or {})},
        )
        job = RenderJob(instance=instance, component="web", filters=filters, references=references or {})
        return render_instance(self.root, job, {instance: node, **(others or {})})
