"""Suggest another name for a missing object that a Pipeline names (pure).

Only the named object is a proof. An existing object with a similar name could belong to another application, so it is
suggested and never used.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kardinal.objects.suggestions import nearest
from kardinal_agent.health.verdict import MissingObject, Verdict, WatchedObjects

__all__ = ["with_hint"]

_COMPARED: Final = 2_000
"""The most names that are compared; some hundred comparisons take a millisecond."""


_ALIKE: Final = 0.5
"""The likeness of a suggestion, from 0 to 1.

Lower than for other names, because many objects are called `<application>-<environment>`.
"""


def with_hint(verdict: Verdict, absent: MissingObject, others: WatchedObjects) -> Verdict:
    """Return the verdict with the nearest name in `others`, or with another remedy if no name is near."""
    names = [other["metadata"]["name"] for other in others.list(absent.kind, absent.key.namespace)[:_COMPARED]]
    near = nearest(absent.key.name, names, cutoff=_ALIKE)
    hint = f"did you mean {near}? Correct {absent.field}" if near else f"create it, or correct {absent.field}"
    details = f"{verdict.details}; {hint}" if verdict.details else ""
    return replace(verdict, message=f"{verdict.message}; {hint}", details=details)
