"""The question whether a Graph may be walked at all, which the program answers and the engine only asks.

A walk acts with the rights of the program. So the program says which Graphs it made itself, or trusts for another
reason; the engine compiles and walks no other one. Deletion is not asked for: it removes only what the Graph owns.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from kardinal.objects import JsonObject

__all__ = ["ADMITTED", "UNDECIDED", "Admission", "Verdict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer about one Graph.

    An undecided one is asked for again when a source of the answer changes. `message` says of a refused one why, and
    what its author can do.
    """

    state: Literal["admitted", "undecided", "refused"]
    message: str = ""


ADMITTED = Verdict("admitted")
UNDECIDED = Verdict("undecided")

Admission = Callable[[JsonObject], Awaitable[Verdict]]
