"""Trees of a real repository, as edits get them, and the steps of a sequence on them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pygit2

from kardinal.git.objects import Staging
from kardinal.git.tree import TreeView, apply
from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.pipeline import StepSpec
from kardinal.promotion.steps.builtin import BUILTIN_STEPS
from kardinal.promotion.steps.commit_plan import edit_of
from kardinal.promotion.steps.declaration import Surroundings
from kardinal.promotion.steps.effect import Notes
from kardinal.promotion.steps.sequence import planned
from kardinal.tree.edit import Changes, Tree
from tests.support.objects import bundle

__all__ = ["DIRECTORY", "Files", "promoted_bundle"]

DIRECTORY = "environments/dev"


def promoted_bundle(*references: str, **artifacts: Any) -> Bundle:
    """Return a Bundle of images, each named by the last part of its repository."""
    images = [{"name": text.partition(":")[0].rpartition("/")[2], "reference": text} for text in references]
    made = bundle("app-1", artifacts={"images": images, **artifacts})
    return Bundle.model_validate(made)


class Files:
    """The files of a repository; a path is relative to the environment's directory unless it starts with a slash."""

    def __init__(self, directory: Path, files: Mapping[str, str | bytes]) -> None:
        self.staging = Staging(pygit2.init_repository(str(directory), bare=True))
        contents = {_full(path): text.encode() if isinstance(text, str) else text for path, text in files.items()}
        self.tree = apply(self.staging, self.staging.add_tree({}), contents)

    def view(self) -> Tree:
        return TreeView.for_edit(self.staging, self.tree)

    def changes(
        self,
        *steps: tuple[str, Mapping[str, Any]],
        of: Bundle,
        inputs: Mapping[str, Tree] | None = None,
        notes: Notes | None = None,
        **spec: Any,
    ) -> dict[str, bytes | None]:
        """Return what the steps change; a path inside the environment's directory is relative to it."""
        step = PromotionStep.model_validate(
            {
                "metadata": {"name": "app-1-dev", "namespace": "team"},
                "spec": {
                    "pipeline": "my-app",
                    "environment": "dev",
                    "bundleRef": "app-1",
                    "path": DIRECTORY,
                    "git": {"url": "https://git.example.com/x.git"},
                    "steps": [],
                    "health": {"type": "resource", "timeout": "10m"},
                    **spec,
                },
            }
        )
        sequence = planned([StepSpec(uses=uses, config=dict(config)) for uses, config in steps], BUILTIN_STEPS)
        given = {name: partial(_beside, tree) for name, tree in (inputs or {}).items()}
        edit = edit_of(step, of, sequence, Surroundings(inputs=given, notes=notes or Notes()))
        found: Changes = edit(self.view())
        self.tree = apply(self.staging, self.tree, found)
        return {_short(path): content for path, content in found.items()}

    def read(self, path: str) -> str | None:
        content = self.view().read(_full(path))
        return None if content is None else content.decode()


def _beside(wanted: Tree, _: Tree) -> Tree:
    return wanted


def _full(path: str) -> str:
    return path[1:] if path.startswith("/") else f"{DIRECTORY}/{path}"


def _short(path: str) -> str:
    return path.removeprefix(f"{DIRECTORY}/") if path.startswith(f"{DIRECTORY}/") else f"/{path}"
