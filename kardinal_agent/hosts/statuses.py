"""The commit statuses of a pull request: what its gates say, where the host can hold a merge by it (pure).

`kardinal/<pipeline>/<environment>` is one environment, `kardinal` all that a pull request touches: the one to require.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kardinal.objects.text import cut
from kardinal.scm import CommitStatus

__all__ = ["AGGREGATE", "statuses_of"]

AGGREGATE = "kardinal"
DESCRIPTION_LIMIT = 140
"""Characters that every host takes."""


def statuses_of(pipeline: str, holds: Mapping[str, Sequence[str]]) -> list[CommitStatus]:
    """Return the statuses of a pull request that touches environments, each with what holds it.

    Without an environment only the aggregate is there, and it is success.
    """
    single = [
        _status(f"{AGGREGATE}/{pipeline}/{environment}", reasons, opened=f"every gate of {environment} is open")
        for environment, reasons in holds.items()
    ]
    reasons = list(dict.fromkeys(reason for each in holds.values() for reason in each))
    opened = f"every gate of {', '.join(holds)} is open" if holds else "it changes no environment"
    return [*single, _status(AGGREGATE, reasons, opened=opened)]


def _status(context: str, reasons: Sequence[str], *, opened: str) -> CommitStatus:
    description = " ".join("; ".join(reasons).split()) if reasons else opened
    return CommitStatus(context, "pending" if reasons else "success", cut(description, DESCRIPTION_LIMIT))
