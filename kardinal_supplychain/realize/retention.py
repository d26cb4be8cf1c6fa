"""Choose the runs that are deleted: of each outcome only the newest are kept.

The newest run is never deleted, because it says what was made last; nor is the run that the outputs stem from. Runs
that have not finished are kept up to a number of their own, so that inputs that change faster than runs finish do not
fill a namespace.
"""

from __future__ import annotations

from collections.abc import Sequence

from kardinal_supplychain.api.status import RunOutcome
from kardinal_supplychain.api.templates import RetentionPolicy
from kardinal_supplychain.realize.runs import StampedRun

__all__ = ["UNFINISHED_LIMIT", "surplus_runs"]

UNFINISHED_LIMIT = 20
"""The number of unfinished runs that are kept."""


def surplus_runs(runs: Sequence[StampedRun], policy: RetentionPolicy | None, *, outputs_of: int) -> list[StampedRun]:
    """Return the runs that are to be deleted, the oldest first.

    `runs` has the live runs, the newest first; `outputs_of` is the number of the run that the outputs stem from.
    """
    kept = policy or RetentionPolicy()
    limits: dict[RunOutcome, int] = {
        "succeeded": kept.max_successful_runs,
        "failed": kept.max_failed_runs,
        "unfinished": UNFINISHED_LIMIT,
    }
    counts = dict.fromkeys(limits, 0)
    surplus = []
    for run in runs:
        if run.object["metadata"].get("deletionTimestamp"):
            continue
        counts[run.outcome] += 1
        is_needed = run is runs[0] or run.sequence == outputs_of
        if counts[run.outcome] > limits[run.outcome] and not is_needed:
            surplus.append(run)
    return surplus[::-1]
