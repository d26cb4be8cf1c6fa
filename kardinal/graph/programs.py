"""Programs that were compiled beforehand: many expressions take longer to compile than the event loop can be held."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kardinal import cel

__all__ = ["NO_PROGRAMS", "Programs", "program_of"]

Programs = Mapping[str, cel.Program | cel.CompileError]
"""Compiled programs, or the errors of expressions that do not compile, by the text of the expression."""

NO_PROGRAMS: Final[Programs] = {}


def program_of(source: str, programs: Programs) -> cel.Program:
    """Return the program of `source`; raises CompileError."""
    known = programs.get(source)
    if isinstance(known, cel.CompileError):
        raise cel.CompileError(known.position, known.message, source)
    return known or cel.compile(source)
