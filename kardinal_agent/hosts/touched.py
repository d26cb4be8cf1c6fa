"""Decide which environments a change to a repository reaches (pure).

The base of the pull request is ignored: its author can change it at any time, while the status of the commit stays. The
names of files come from that author, who may be a stranger; they are only compared, in time linear in their length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kardinal.promotion.policy.binding import Place
from kardinal_agent.hosts.included import Included

__all__ = ["touched"]

_ROOT = "."


def touched(places: Mapping[Place, Included], files: Sequence[str] | None) -> list[Place]:
    """Return the environments that a change of `files` reaches; `places` has the included directories of each.

    A file reaches an environment if it is in the environment's directory or in an included one, or if it has the path
    of such a directory or of a parent of it. Unknown files (None) reach every environment. Every file reaches an
    environment that is a whole branch, or whose included directories are unknown.
    """
    if files is None:
        return [*places]
    directories = {place: (place.path, *included.directories) for place, included in places.items()}
    depth = max((path.count("/") + 1 for each in directories.values() for path in each), default=0)
    names = set[str]()
    below = set[str]()
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
