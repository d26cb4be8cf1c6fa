"""Decide which environments a change to a repository reaches (pure).

The branch that a pull request is to be merged into does not count: its author can change it at any time, while the
status of the commit stays. Names of files and branches come from that author, a stranger perhaps. They are compared and
nothing else, in time and memory that their length does not drive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kardinal.policy.binding import Place
from kardinal_agent.hosts.included import Included

__all__ = ["touched"]

_ROOT = "."


def touched(places: Mapping[Place, Included], files: Sequence[str] | None) -> list[Place]:
    """Return the environments that a change of `files` reaches; `places` says what each takes in.

    An environment is reached by a file in its directory or one that it takes in, or in the place of such a directory
    or of one above it. Files that are not known reach every environment, and so does any file one that is the whole
    branch, or that may take in anything.
    """
    if files is None:
        return [*places]
    directories = {place: (place.path, *included.directories) for place, included in places.items()}
    depth = max((path.count("/") + 1 for each in directories.values() for path in each), default=0)
    names, below = set[str](), set[str]()
    for file in files:
        segments = file.split("/", depth)[: depth + 1]
        if len(segments) <= depth:
            names.add(file)
        below.update("/".join(segments[:length]) for length in range(1, len(segments)))
    return [
        place
        for place, paths in directories.items()
        if (files and places[place].unknown)
        or any(_reaches(path, names, below, any_file=bool(files)) for path in paths)
    ]


def _reaches(path: str, names: set[str], below: set[str], *, any_file: bool) -> bool:
    if path == _ROOT:
        return any_file
    segments = path.split("/")
    above = {"/".join(segments[:length]) for length in range(1, len(segments) + 1)}
    return path in below or not names.isdisjoint(above)
