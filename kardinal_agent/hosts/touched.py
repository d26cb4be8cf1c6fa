"""Decide which environments a change to a repository reaches (pure).

Names of files and branches come from the author of the pull request, a stranger perhaps. They are compared and nothing
else, in time and memory that their length does not drive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kardinal.policy.binding import Place

__all__ = ["touched"]

_ROOT = "."


def touched(places: Iterable[Place], base: str, files: Sequence[str] | None) -> list[Place]:
    """Return the environments that a change of `files` on branch `base` reaches.

    An environment is reached by a file in its directory, or in the place of its directory or of one above it. Files
    that are not known reach every environment of the branch, and so does any file one that is the whole branch.
    """
    here = [place for place in places if place.branch == base]
    if files is None:
        return here
    depth = max((place.path.count("/") + 1 for place in here), default=0)
    names, below = set[str](), set[str]()
    for file in files if here else ():
        segments = file.split("/", depth)[: depth + 1]
        if len(segments) <= depth:
            names.add(file)
        below.update("/".join(segments[:length]) for length in range(1, len(segments)))
    return [place for place in here if _reaches(place.path, names, below, any_file=bool(files))]


def _reaches(path: str, names: set[str], below: set[str], *, any_file: bool) -> bool:
    if path == _ROOT:
        return any_file
    segments = path.split("/")
    above = {"/".join(segments[:length]) for length in range(1, len(segments) + 1)}
    return path in below or not names.isdisjoint(above)
