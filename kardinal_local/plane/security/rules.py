"""Evaluate the rules of roles: what one allows, and what one set of them allows beyond another.

Rights only add up: a request is allowed when one rule allows it. Comparing two sets works the same way, on rules taken
apart until each speaks of one verb on one resource: who grants such an atom must hold a rule that covers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import orjson

from kardinal_local.plane.documents import JsonObject

__all__ = ["Rule", "described", "listed", "missing_from", "parse_rules", "quoted"]

_ALL = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    """One PolicyRule: verbs on resources, or verbs on URL paths; no `names` means every name."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    def allows(self, verb: str, *, group: str, resource: str) -> bool:
        """Whether it speaks of `verb` on `resource`, which may be `plural/subresource`; names are not looked at."""
        return (
            _has(self.verbs, verb)
            and _has(self.groups, group)
            and (_has(self.resources, resource) or _has_subresource(self.resources, resource))
        )

    def allows_path(self, verb: str, path: str) -> bool:
        return _has(self.verbs, verb) and any(_covers_path(url, path) for url in self.urls)

    def covers(self, atom: Rule) -> bool:
        """Whether it allows all that `atom`, a rule of one verb on one resource or path, allows."""
        (verb,) = atom.verbs
        if atom.urls:
            return self.allows_path(verb, atom.urls[0])
        named = not self.names or (bool(atom.names) and atom.names[0] in self.names)
        return named and self.allows(verb, group=atom.groups[0], resource=atom.resources[0])

    def atoms(self) -> Iterator[Rule]:
        """The same rights, one by one."""
        for group in self.groups:
            for resource in self.resources:
                for verb in self.verbs:
                    for name in self.names or ("",):
                        yield Rule((verb,), (group,), (resource,), (name,) if name else ())
        for url in self.urls:
            for verb in self.verbs:
                yield Rule((verb,), urls=(url,))

    def to_json(self) -> JsonObject:
        """As it stands in a rules review."""
        fields = {
            "verbs": self.verbs,
            "apiGroups": self.groups,
            "resources": self.resources,
            "resourceNames": self.names,
            "nonResourceURLs": self.urls,
        }
        return {key: list(value) for key, value in fields.items() if value}

    def __str__(self) -> str:
        fields = {
            "APIGroups": self.groups,
            "Resources": self.resources,
            "NonResourceURLs": self.urls,
            "ResourceNames": self.names,
            "Verbs": self.verbs,
        }
        return "{" + ", ".join(f"{key}:{listed(value)}" for key, value in fields.items() if value) + "}"


def parse_rules(role: JsonObject) -> tuple[Rule, ...]:
    """The rules of a Role or ClusterRole as it is stored."""
    return tuple(
        Rule(
            verbs=_strings(rule, "verbs"),
            groups=_strings(rule, "apiGroups"),
            resources=_strings(rule, "resources"),
            names=_strings(rule, "resourceNames"),
            urls=_strings(rule, "nonResourceURLs"),
        )
        for rule in role.get("rules") or ()
    )


def missing_from(held: Sequence[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """The atoms of `wanted` that no rule of `held` covers."""
    return [atom for rule in wanted for atom in rule.atoms() if not any(one.covers(atom) for one in held)]


def described(atoms: Iterable[Rule]) -> list[str]:
    """Atoms for a person to read; verbs on one resource are told together, as the real server does."""
    told: set[str] = set()
    together: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for atom in atoms:
        if atom.urls:
            told.add(str(atom))
        else:
            together.setdefault((atom.groups, atom.resources, atom.names), []).extend(atom.verbs)
    told.update(str(Rule(tuple(verbs), *rest)) for rest, verbs in together.items())
    return sorted(told)


def quoted(value: str) -> str:
    """A text in quotation marks, as Go's %q prints it."""
    return orjson.dumps(value).decode()


def listed(values: Iterable[str]) -> str:
    """A list of texts, as Go's %q prints it."""
    return "[" + " ".join(quoted(value) for value in values) + "]"


def _strings(rule: JsonObject, key: str) -> tuple[str, ...]:
    return tuple(rule.get(key) or ())


def _has(values: tuple[str, ...], wanted: str) -> bool:
    return wanted in values or _ALL in values


def _has_subresource(resources: tuple[str, ...], wanted: str) -> bool:
    _, slash, subresource = wanted.partition("/")
    return bool(slash) and f"*/{subresource}" in resources


def _covers_path(url: str, path: str) -> bool:
    return url == path or (url.endswith(_ALL) and path.startswith(url.rstrip(_ALL)))
