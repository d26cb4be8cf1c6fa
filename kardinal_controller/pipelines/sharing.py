"""Find Pipelines of one namespace that write to the same directory of the same branch, or to all of it.

Each would overwrite the image that the other has promoted and proven. Nothing is said across namespaces, where it would
tell one team what another one does; the gates hold either Pipeline by what it writes to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from kardinal.api import Pipeline
from kardinal.api.repository_url import InvalidRepositoryURL
from kardinal.objects import JsonObject, Key, key_of
from kardinal.policy.binding import Place, places_of
from kardinal.runtime import Informer

__all__ = ["SharedPaths"]

_INDEX = "target"
_WHOLE, _ANY = "<all>", "<any>"
"""Among the indexed paths: that of a writer to all of a branch, and one that every writer has."""
_NAMED = 3
"""Paths, and Pipelines of each, that a message names."""
_FEW = 5
"""Other Pipelines of one path that are looked up. With more, none has to look again when one comes or goes."""


class SharedPaths:
    """An index of Pipelines by what they write to; made before the informer starts."""

    def __init__(self, pipelines: Informer) -> None:
        self._pipelines = pipelines
        pipelines.index(_INDEX, lambda obj: [value for place in _places(obj) for value in _index_values(place)])

    def message(self, pipeline: JsonObject) -> str:
        """Say which paths of a Pipeline other Pipelines write to, too; empty when none does."""
        found = [(place, others) for place in _places(pipeline) if (others := self._others(place, key_of(pipeline)))]
        told = "; ".join(_sentence(place, others) for place, others in found[:_NAMED])
        more = "; and others" if len(found) > _NAMED else ""
        return f"{told}{more}. Give each Pipeline a directory or a branch of its own" if found else ""

    def sharers(self, pipeline: JsonObject) -> Iterable[Key]:
        """Return the Pipelines whose message depends on this one, which has just come, changed or gone."""
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
