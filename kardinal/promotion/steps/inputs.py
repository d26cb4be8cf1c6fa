"""Read from an input: the tree that a `git-clone` with a config has opened, by its `as`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from kardinal.promotion.steps.declaration import EditContext, StepConfig
from kardinal.tree.edit import EditError, Tree

__all__ = ["InputConfig", "input_tree"]


class InputConfig(StepConfig):
    """The config of a step that can read from an input instead of the environment's repository."""

    input: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=63,
            description="The `as` of a `git-clone` step with a config: what is read is then a path in what it opened.",
        ),
    ] = None

    @classmethod
    def reads_from(cls, config: Mapping[str, Any]) -> str | None:
        name = config.get("input")
        return name if isinstance(name, str) else None


def input_tree(context: EditContext, name: str) -> Tree:
    """Return the tree of an input. Raises `EditError` if no step has opened it."""
    if name not in context.inputs:
        raise EditError(name, "is not the `as` of a git-clone before this step", remedy="Add one, with url or branch")
    return context.inputs[name]
