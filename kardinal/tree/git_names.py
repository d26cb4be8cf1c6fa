"""The names that kardinal uses in repositories and at their hosts: trailers, branches of proposals, labels."""

from __future__ import annotations

__all__ = [
    "PROPOSALS",
    "PULL_REQUEST_LABEL",
    "TRAILER_ATTEMPT",
    "TRAILER_BUNDLE",
    "TRAILER_CONFIG",
    "TRAILER_ENVIRONMENT",
    "TRAILER_STEP",
    "TRAILER_UID",
    "is_own_label",
]

PROPOSALS = "kardinal/"
"""The prefix of branches that hold proposals."""
PULL_REQUEST_LABEL = "kardinal"
"""The label of every pull request that kardinal opens. Its other labels start with this name and a slash."""
TRAILER_BUNDLE = "Kardinal-Bundle"
TRAILER_ENVIRONMENT = "Kardinal-Environment"
TRAILER_STEP = "Kardinal-Step"
TRAILER_CONFIG = "Kardinal-Config"
"""For a Bundle with a configuration: its commit, its repository, and the directory it was merged into."""
TRAILER_ATTEMPT = "Kardinal-Attempt"
"""The number of an attempt that a person requested. The commit of an earlier attempt may have been reverted since."""
TRAILER_UID = "Kardinal-Uid"
"""The uid of the Bundle, so that a Bundle created again under the same name does not take the old commits for its own.
"""


def is_own_label(name: str) -> bool:
    """Return whether kardinal adds and removes a pull request label by itself; all other labels belong to people."""
    return name == PULL_REQUEST_LABEL or name.startswith(f"{PULL_REQUEST_LABEL}/")
