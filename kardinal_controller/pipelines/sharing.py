"""Find Pipelines of one namespace that write to the same directory of the same branch, or to the whole branch.

Each would overwrite the image that the other has promoted and verified. Pipelines of other namespaces are not reported,
because that would show one team the work of another; gates hold both Pipelines by the place they write to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from kardinal.objects import JsonObject, Key, key_of
from kardinal.promotion.api import Pipeline
from kardinal.promotion.policy.binding import Place, places_of
from kardinal.runtime import Informer
from kardinal.tree.repository_url import InvalidRepositoryURL

__all__ = ["SharedPaths"]

_INDEX = "target"
_WHOLE = "<all>"
_ANY = "<any>"
"""Index values that are not paths: of a writer to the whole branch, and of every writer."""
_NAMED = 3
"""The most paths, and Pipelines per path, that a message names."""
_FEW = 5
"""The most other Pipelines of a path that are looked up. With more, none is reconciled when one comes or goes."""


class SharedPaths:
    """An index of Pipelines by the place they write to; must be created before the informer starts."""

    def __init__(self, pipelines: Informer) -> None:
        self._pipelines = pipelines
        pipelines.index(_INDEX, lambda obj: [value for place in _places(obj) for value in _index_values(place)])

    def message(self, pipeline: JsonObject) -> str:
        """Return the message about paths that other Pipelines write to as well; empty if there are none."""
        found = [(place, others) for place in _places(pipeline) if (others := self._others(place, key_of(pipeline)))]
        told = "; ".join(_sentence(place, others) for place, others in found[:_NAMED])
        more = "; and others" if len(found) > _NAMED else ""
        return f"{told}{more}. Give each Pipeline a directory or a branch of its own" if found else ""

    def sharers(self, pipeline: JsonObject) -> Iterable[Key]:
        """Return the Pipelines whose message depends on this one, which was just added, changed or deleted."""
        for place in _places(pipeline):
            others = self._others(place, key_of(pipeline))
            yield from others if len(others) < _FEW else ()

    def _others(self, place: Place, own: Key) -> list[Key]:
        wanted = [_ANY] if place.whole else [place.path, _WHOLE]
        found = {
            key_of(obj)
            for path in wanted
            for obj in self._pipelines.by_index(_INDEX, _index_value(place, path), limit=_FEW + 1)
        }
        return sorted(found - {own})[:_FEW]


def _places(pipeline: JsonObject) -> Iterator[Place]:
    try:
        yield from places_of(Pipeline.model_validate(pipeline))
    except (InvalidRepositoryURL, ValidationError):
        return


def _index_values(place: Place) -> tuple[str, str]:
    return _index_value(place, _WHOLE if place.whole else place.path), _index_value(place, _ANY)


def _index_value(place: Place, path: str) -> str:
    return repr((place.namespace, place.repository, place.branch, path))


def _sentence(place: Place, others: list[Key]) -> str:
    names = ", ".join(key.name for key in others[:_NAMED]) + (" and others" if len(others) > _NAMED else "")
    return f"{place.path} on branch {place.branch} of {place.repository} is written by Pipeline {names}, too"
