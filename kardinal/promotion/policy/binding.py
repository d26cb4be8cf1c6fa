"""Bind gates to facts: the namespace, repository, branch and path that an environment writes to.

The authors of Pipelines choose the names of Pipelines and environments, and a gate of the organisation is there to hold
these authors. So such a gate selects by facts that cannot be renamed without writing to another place.

A path pattern is compared with everything that an edit at the path can reach. It binds the paths that it matches, the
paths below a match, and the paths that contain a possible match. For example, `environments/prod` also binds
`environments`, and `**/prod` binds every path, because each of them can contain a `prod`.

The same repository has different ports over https, ssh and http, and only its host knows which ports belong together.
So ports are compared only if both the pattern and the repository use https; otherwise a pattern binds the path on every
port of the host.

All comparisons go through the segments from both ends, in time linear in their length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from kardinal.promotion.api import Pipeline
from kardinal.promotion.api.pipeline import Environment
from kardinal.promotion.api.policy_gate import GateMatch
from kardinal.tree.repository_url import (
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
    """A pattern of repositories, split at `/`. `any_port`: it uses ssh or http, so its port is not compared."""

    segments: _Segments
    any_port: bool


@dataclass(frozen=True, slots=True)
class Place:
    """The facts of one environment that gates bind to, in the normalized form in which they are compared."""

    namespace: str
    pipeline: str
    environment: str
    repository: str
    branch: str
    path: str
    any_port: bool = False
    """Whether the repository URL has the scheme ssh or http, so that its port cannot be compared with an https port."""
    whole: bool = False
    """Whether the environment writes the whole branch instead of a directory: the layout `branch`."""

    @property
    def target(self) -> tuple[str, str, str]:
        """Return the repository, branch and path: equal for all environments that write to the same directory."""
        return self.repository, self.branch, self.path


def place_of(pipeline: Pipeline, environment: Environment) -> Place:
    """Return the facts of one environment; raises `InvalidRepositoryURL`."""
    return _place(pipeline, environment, repository_key(pipeline.spec.git.url))


def places_of(pipeline: Pipeline) -> tuple[Place, ...]:
    """Return the facts of every environment; raises `InvalidRepositoryURL`."""
    repository = repository_key(pipeline.spec.git.url)
    return tuple(_place(pipeline, environment, repository) for environment in pipeline.spec.environments)


def clean_path(path: str) -> str:
    """Return a path inside a repository without empty and `.` segments; `.` stands for the root."""
    return "/".join(_path_segments(path)) or "."


def clean_branch(branch: str) -> str:
    """Return the short name of a branch: `main` for `refs/heads/main`."""
    while branch.startswith(_HEADS):
        branch = branch.removeprefix(_HEADS)
    return branch


@dataclass(frozen=True, slots=True)
class Binding:
    """The `spec.match` of a gate, prepared for comparison. A field that is None binds everything."""

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
        """The number of patterns in all lists."""
        lists = (self.namespaces, self.pipelines, self.repositories, self.branches, self.paths)
        return sum(len(each) for each in lists if each is not None)

    def holds(self, place: Place) -> bool:
        """Return whether every list that is given has a pattern that matches the facts of `place`."""
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
    """Yield the patterns for one entry of `match.repositories`, in the form of `repository_key`.

    A host alone, such as `github.com`, stands for all of its repositories. If the host is one that takes ssh on port
    443 under another name, a second pattern for that name follows.
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
        scheme = ""
        rest = pattern
    scheme = scheme.lower()
    if scheme == "file" or rest.startswith("/"):
        return ("file:", "", "", *without_git_suffix(map(folded, _path_segments(rest.partition("/")[2]))))
    host, *path = map(folded, _path_segments(rest) or [_ANY])
    return _host(host, scheme), *(without_git_suffix(path) or [_ANY])


def _host(authority: str, scheme: str) -> str:
    authority = authority.rpartition("@")[2]
    host, _, port = authority.rpartition(":")
    if not port.isdecimal():
        host = authority
        port = ""
    host = host.removesuffix(".")
    return f"{host}:{port}" if port and port != str(DEFAULT_PORTS.get(scheme, DEFAULT_PORTS["https"])) else host


def _matches(pattern: Sequence[str], segments: Sequence[str]) -> bool:
    """Return whether `pattern` matches exactly `segments`; `**` stands for any number of segments."""
    if _ANY not in pattern:
        return len(pattern) == len(segments) and _all(pattern, segments)
    head = pattern[: pattern.index(_ANY)]
    tail = pattern[len(pattern) - pattern[::-1].index(_ANY) :]
    return (
        len(segments) >= len(head) + len(tail)
        and _all(head, segments)
        and _all(tail, segments[len(segments) - len(tail) :])
    )


def _reaches(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Return whether an edit at or below `path` can change a file that `pattern` stands for."""
    head = pattern[: pattern.index(_ANY)] if _ANY in pattern else pattern
    return _all(head, path)


def _all(pattern: Sequence[str], segments: Sequence[str]) -> bool:
    """Compare the segments pairwise, as far as both sequences go."""
    return all(map(_glob, pattern, segments))


def _glob(pattern: str, text: str) -> bool:
    """Return whether `pattern`, in which `*` stands for any characters, matches `text`.

    Each part between two `*` is searched once, after the end of the previous part, so the time is linear.
    """
    if pattern == text or "*" not in pattern:
        return pattern == text
    first, *parts = pattern.split("*")
    last = parts.pop()
    position = len(first)
    end = len(text) - len(last)
    if position > end or not (text.startswith(first) and text.endswith(last)):
        return False
    for part in parts:
        found = text.find(part, position, end)
        if found < 0:
            return False
        position = found + len(part)
    return True
