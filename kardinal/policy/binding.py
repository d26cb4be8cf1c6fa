"""Bind gates to facts: the namespace, the repository, the branch and the path that an environment is written to.

The names of Pipelines and environments are chosen by those whom a gate is to hold, so a gate of the organisation
selects by what cannot be renamed without writing somewhere else. A path is compared with what an edit there can reach:
a pattern binds what it matches, what lies below a match, and what contains a possible match. So `environments/prod`
binds `environments`, and `**/prod` binds every path, because each can contain a `prod`.

A repository has other ports by https, by ssh and by http. Which of them belong together only its host knows, so the
port counts where pattern and repository both speak https, and else a pattern binds the path on every port of the host.

Everything is decided by comparing segments from the front and from the end, in time linear in their length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from kardinal.api import Pipeline
from kardinal.api.pipeline import Environment
from kardinal.api.policy_gate import GateMatch
from kardinal.api.repository_url import (
    DEFAULT_PORTS,
    folded,
    host_over_ssh,
    repository_key,
    ssh_spelling,
    without_git_suffix,
)

__all__ = ["Binding", "Place", "clean_branch", "clean_path", "place_of", "places_of"]

_ANY = "**"
_HEADS = "refs/heads/"

_OTHER_PORTS = ("ssh://", "http://")
_PORT = re.compile(r":[0-9*]+\Z")

_Segments = tuple[str, ...]


class _Repository(NamedTuple):
    """A pattern of repositories; `any_port`: its port, if any, is not that of https."""

    segments: _Segments
    any_port: bool


@dataclass(frozen=True, slots=True)
class Place:
    """The facts of one environment that gates bind to, as they are compared."""

    namespace: str
    pipeline: str
    environment: str
    repository: str
    branch: str
    path: str
    any_port: bool = False
    whole: bool = False
    """Whether all of the branch is written, and not a directory."""
    """Whether the repository is reached by ssh or http, whose ports say nothing about that of https."""

    @property
    def target(self) -> tuple[str, str, str]:
        """Return the repository, branch and path: equal for all who write to the same directory."""
        return self.repository, self.branch, self.path


def place_of(pipeline: Pipeline, environment: Environment) -> Place:
    """Return the facts of one environment; raises `InvalidRepositoryURL`."""
    return _place(pipeline, environment, repository_key(pipeline.spec.git.url))


def places_of(pipeline: Pipeline) -> tuple[Place, ...]:
    """Return the facts of every environment; raises `InvalidRepositoryURL`."""
    repository = repository_key(pipeline.spec.git.url)
    return tuple(_place(pipeline, environment, repository) for environment in pipeline.spec.environments)


def clean_path(path: str) -> str:
    """Return a path inside a repository without empty and `.` segments; `.` is the root."""
    return "/".join(_path_segments(path)) or "."


def clean_branch(branch: str) -> str:
    """Return the short name of a branch."""
    while branch.startswith(_HEADS):
        branch = branch.removeprefix(_HEADS)
    return branch


@dataclass(frozen=True, slots=True)
class Binding:
    """A `match`, ready to be compared. None stands for a field that binds everything."""

    namespaces: tuple[_Segments, ...] | None
    pipelines: tuple[_Segments, ...] | None
    repositories: tuple[_Repository, ...] | None
    branches: tuple[_Segments, ...] | None
    paths: tuple[_Segments, ...] | None

    @classmethod
    def of(cls, match: GateMatch | None) -> Binding:
        match = match or GateMatch()
        return cls(
            namespaces=_read(match.namespaces, _segments),
            pipelines=_read(match.pipelines, _segments),
            repositories=tuple(chain.from_iterable(map(_repository_patterns, match.repositories)))
            if match.repositories
            else None,
            branches=_read(match.branches, lambda pattern: _segments(clean_branch(pattern))),
            paths=_read(match.paths, _path_segments),
        )

    @property
    def patterns(self) -> int:
        """Return how many patterns there are to compare."""
        lists = (self.namespaces, self.pipelines, self.repositories, self.branches, self.paths)
        return sum(len(each) for each in lists if each is not None)

    def holds(self, place: Place) -> bool:
        """Return whether each list that is given has a pattern for the facts of `place`."""
        return (
            _any(self.namespaces, _segments(place.namespace), _matches)
            and _any(self.pipelines, _segments(place.pipeline), _matches)
            and self._holds_repository(place)
            and _any(self.branches, _segments(place.branch), _matches)
            and _any(self.paths, _path_segments(place.path), _reaches)
        )

    def _holds_repository(self, place: Place) -> bool:
        if self.repositories is None:
            return True
        segments = _segments(place.repository)
        return any(
            _matches(_without_port(pattern.segments), _without_port(segments))
            if pattern.any_port or place.any_port
            else _matches(pattern.segments, segments)
            for pattern in self.repositories
        )


def _place(pipeline: Pipeline, environment: Environment, repository: str) -> Place:
    whole = pipeline.spec.git.layout == "branch"
    return Place(
        namespace=pipeline.metadata.namespace,
        pipeline=pipeline.metadata.name,
        environment=environment.name,
        repository=repository,
        branch=clean_branch(environment.target_branch(pipeline.spec.git)),
        path="." if whole else clean_path(environment.directory),
        whole=whole,
        any_port=ssh_spelling(pipeline.spec.git.url).lower().startswith(_OTHER_PORTS),
    )


def _read(patterns: Iterable[str] | None, read: Callable[[str], _Segments]) -> tuple[_Segments, ...] | None:
    return tuple(map(read, patterns)) if patterns else None


def _any(
    patterns: tuple[_Segments, ...] | None, segments: _Segments, compare: Callable[[_Segments, _Segments], bool]
) -> bool:
    return patterns is None or any(compare(pattern, segments) for pattern in patterns)


def _segments(text: str) -> _Segments:
    return tuple(text.split("/"))


def _path_segments(path: str) -> _Segments:
    return tuple(segment for segment in path.split("/") if segment not in ("", "."))


def _repository_patterns(pattern: str) -> Iterator[_Repository]:
    """Yield a pattern in the form of `repository_key`; a host alone stands for all its repositories.

    One that names where a host takes ssh on the port of https is followed by the same of that host.
    """
    pattern = ssh_spelling(pattern)
    segments = _repository_segments(pattern)
    yield _Repository(segments, any_port=pattern.lower().startswith(_OTHER_PORTS))
    name, _, port = segments[0].partition(":")
    known = host_over_ssh(name, DEFAULT_PORTS["https"]) if port in ("", "443") else None
    if known is not None:
        yield _Repository((known, *segments[1:]), any_port=True)


def _without_port(segments: _Segments) -> _Segments:
    return (_PORT.sub("", segments[0]), *segments[1:]) if segments else segments


def _repository_segments(pattern: str) -> _Segments:
    scheme, found, rest = pattern.partition("://")
    if not found:
        scheme, rest = "", pattern
    scheme = scheme.lower()
    if scheme == "file" or rest.startswith("/"):
        return ("file:", "", "", *without_git_suffix(map(folded, _path_segments(rest.partition("/")[2]))))
    host, *path = map(folded, _path_segments(rest) or [_ANY])
    return _host(host, scheme), *(without_git_suffix(path) or [_ANY])


def _host(authority: str, scheme: str) -> str:
    authority = authority.rpartition("@")[2]
    host, _, port = authority.rpartition(":")
    if not port.isdecimal():
        host, port = authority, ""
    host = host.removesuffix(".")
    return f"{host}:{port}" if port and port != str(DEFAULT_PORTS.get(scheme, DEFAULT_PORTS["https"])) else host


def _matches(pattern: Sequence[str], segments: Sequence[str]) -> bool:
    """Return whether a pattern stands for exactly these segments."""
    if _ANY not in pattern:
        return len(pattern) == len(segments) and _all(pattern, segments)
    head, tail = pattern[: pattern.index(_ANY)], pattern[len(pattern) - pattern[::-1].index(_ANY) :]
    return (
        len(segments) >= len(head) + len(tail)
        and _all(head, segments)
        and _all(tail, segments[len(segments) - len(tail) :])
    )


def _reaches(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Return whether an edit at or below `path` can change what the pattern stands for."""
    head = pattern[: pattern.index(_ANY)] if _ANY in pattern else pattern
    return _all(head, path)


def _all(pattern: Sequence[str], segments: Sequence[str]) -> bool:
    """Compare as many segments as both have."""
    return all(map(_glob, pattern, segments))


def _glob(pattern: str, text: str) -> bool:
    """Return whether a pattern with `*` matches a text; each part is looked for once, behind the one before."""
    if pattern == text or "*" not in pattern:
        return pattern == text
    first, *parts = pattern.split("*")
    last = parts.pop()
    position, end = len(first), len(text) - len(last)
    if position > end or not (text.startswith(first) and text.endswith(last)):
        return False
    for part in parts:
        found = text.find(part, position, end)
        if found < 0:
            return False
        position = found + len(part)
    return True
