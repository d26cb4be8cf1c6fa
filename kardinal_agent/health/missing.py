"""Say of an object that a Pipeline names and that does not exist, what it may be called instead (pure).

Where the type is named, nothing else is taken for the proof: another object that happens to be there could be that of
another application.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kardinal.objects.suggestions import nearest
from kardinal_agent.health.verdict import Absent, Objects, Verdict

__all__ = ["with_hint"]

_COMPARED: Final = 2_000
"""Names that are compared; comparing takes a millisecond for some hundred."""


_ALIKE: Final = 0.5
"""Less than names elsewhere need: many objects have the name of the environment behind that of the application."""


def with_hint(verdict: Verdict, absent: Absent, others: Objects) -> Verdict:
    """Return the verdict with the nearest of the names that may be told, or with what to do else."""
    names = [other["metadata"]["name"] for other in others.list(absent.kind, absent.key.namespace)[:_COMPARED]]
    near = nearest(absent.key.name, names, cutoff=_ALIKE)
    hint = f"did you mean {near}? Correct {absent.field}" if near else f"create it, or correct {absent.field}"
    details = f"{verdict.details}; {hint}" if verdict.details else ""
    return replace(verdict, message=f"{verdict.message}; {hint}", details=details)
