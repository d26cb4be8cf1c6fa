"""Inputs: variables of gate expressions whose values come from outside the Bundle, such as `upstream`.

An input is plain data that was read at one moment. Of what is absent it says why: a gate that needs it stays closed,
and the reason names what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Input"]


@dataclass(frozen=True, slots=True)
class Input:
    """The value of one variable.

    `absent`: path below the variable -> the reason for which it has no value, for example
    `{"staging": "staging is not Verified"}`. A reason holds for all paths below its own; that of `""` for every path.
    """

    value: Mapping[str, Any] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)

    def absence(self, path: str) -> str | None:
        """Return why there is no value at `path`; None if the input does not say."""
        while path not in self.absent:
            if not path:
                return None
            path = path.rpartition(".")[0]
        return self.absent[path]
