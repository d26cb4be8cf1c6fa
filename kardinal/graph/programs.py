"""Programs that were compiled beforehand, because compiling many takes longer than a function may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kardinal import cel

__all__ = ["NO_PROGRAMS", "Programs", "program_of"]

Programs = Mapping[str, cel.Program | cel.CompileError]
"""By the text of the expression."""

NO_PROGRAMS: Final[Programs] = {}


def program_of(source: str, programs: Programs) -> cel.Program:
    """Return the program of `source`; raises CompileError."""
    known = programs.get(source)
    if isinstance(known, cel.CompileError):
        raise cel.CompileError(known.position, known.message)
    return known or cel.compile(source)
