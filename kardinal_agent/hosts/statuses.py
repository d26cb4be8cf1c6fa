"""The commit statuses of a pull request: what its gates say, where the host can hold a merge by it (pure).

`kardinal/<pipeline>/<environment>` is one environment, `kardinal` all that a pull request touches: the one to require.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kardinal.objects.text import cut
from kardinal.scm import CommitStatus

__all__ = ["AGGREGATE", "Subject", "statuses_of"]

AGGREGATE = "kardinal"
DESCRIPTION_LIMIT = 140
"""Characters that every host takes."""
SINGLE_LIMIT = 8
"""Environments with a status of their own; a pull request of a stranger may touch them all."""


class Subject(NamedTuple):
    """One environment of one Pipeline."""

    pipeline: str
    environment: str


def statuses_of(holds: Mapping[Subject, Sequence[str]], *, unknown: str = "") -> list[CommitStatus]:
    """Return the statuses of a pull request that touches environments, each with what holds it.

    Without an environment only the aggregate is there, and it is success. `unknown` says why a pull request counts as
    touching all of them.
    """
    single = [
        _status(f"{AGGREGATE}/{pipeline}/{environment}", reasons, opened=f"every gate of {environment} is open")
        for (pipeline, environment), reasons in holds.items()
    ]
    reasons = list(dict.fromkeys(reason for each in holds.values() for reason in each))
    names = ", ".join(dict.fromkeys(environment for _, environment in holds))
    opened = f"every gate of {names} is open" if holds else "it changes no environment"
    told = [unknown, *reasons] if unknown and reasons else reasons
    return [*(single if len(single) <= SINGLE_LIMIT else ()), _status(AGGREGATE, told, opened=opened)]


def _status(context: str, reasons: Sequence[str], *, opened: str) -> CommitStatus:
    description = " ".join("; ".join(reasons).split()) if reasons else opened
    return CommitStatus(context, "pending" if reasons else "success", cut(description, DESCRIPTION_LIMIT))
