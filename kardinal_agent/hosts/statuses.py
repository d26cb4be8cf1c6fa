"""The commit statuses of a pull request, with the answers of its gates; a host can refuse a merge by them (pure).

`kardinal/<pipeline>/<environment>` is about one environment, such as `kardinal/my-app/prod`. `kardinal` is about all
environments that the pull request touches, and is the status that a protected branch should require.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kardinal.objects.text import cut
from kardinal.scm import CommitStatus

__all__ = ["AGGREGATE", "EnvironmentSubject", "statuses_of"]

AGGREGATE = "kardinal"
DESCRIPTION_LIMIT = 140
"""The most characters of a description that every host accepts."""
SINGLE_LIMIT = 8
"""The most environments with a status of their own; a pull request of a stranger may touch every environment."""


class EnvironmentSubject(NamedTuple):
    """One environment of one Pipeline."""

    pipeline: str
    environment: str


def statuses_of(holds: Mapping[EnvironmentSubject, Sequence[str]], *, unknown: str = "") -> list[CommitStatus]:
    """Return the statuses of a pull request; `holds` has the reasons for each environment that it touches.

    Without an environment there is only the aggregate status, with success. `unknown` is the reason for which a pull
    request counts as touching all environments; empty if it is known which ones it touches.
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
