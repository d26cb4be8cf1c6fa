"""Guesses from names: the provider of a repository from its host, the place of an environment from its name (pure).

A guess that is wrong costs a person a moment where it asks for a review, and an outage where it does not. So a name
that is not known may be production.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from itertools import pairwise

from kardinal.api.pipeline import ProviderName
from kardinal.api.repository_url import InvalidRepositoryURL, RepositoryURL, is_local_spelling

__all__ = ["Place", "knows_environment", "may_be_production", "place_of_environment", "provider_of"]

_HOSTS: Mapping[str, ProviderName] = {
    "github.com": "github",
    "ssh.github.com": "github",
    "gitlab.com": "gitlab",
    "altssh.gitlab.com": "gitlab",
    "codeberg.org": "forgejo",
}
"""Hosts whose provider is known by their name."""


class Place(IntEnum):
    """The place of an environment before or behind others; `UNKNOWN` is beside staging."""

    DEVELOPMENT = 0
    TEST = 1
    STAGING = 2
    UNKNOWN = 3
    BEFORE_PRODUCTION = 4
    PRODUCTION = 5


_WORDS: Mapping[Place, frozenset[str]] = {
    Place.DEVELOPMENT: frozenset(("dev", "develop", "development", "local", "sandbox")),
    Place.TEST: frozenset(("test", "testing", "qa", "int", "integration", "ci", "nonprod", "nonproduction")),
    Place.STAGING: frozenset(("uat", "stage", "staging", "stg", "acceptance")),
    Place.BEFORE_PRODUCTION: frozenset(("preprod", "preproduction", "canary")),
    Place.PRODUCTION: frozenset(("prod", "production", "prd", "live")),
}
_PRODUCTION = re.compile(r"(prod|production|prd|live)\d*")
_NOT_PRODUCTION = {"non": Place.TEST, "not": Place.TEST, "no": Place.TEST, "pre": Place.BEFORE_PRODUCTION}
"""Words that take the word for production behind them back."""


def provider_of(url: str) -> ProviderName | None:
    """Return the provider of a repository; None where the name of its host does not tell.

    `git@github.com:acme/gitops` → `github`.
    """
    if is_local_spelling(url):
        return "local"
    try:
        host = RepositoryURL.parse(url, allow_local=False).host
    except InvalidRepositoryURL:
        return None
    return _HOSTS.get(host.partition(":")[0])


def place_of_environment(name: str) -> Place:
    """Return the place that the name of an environment tells: `pre-prod` → `Place.BEFORE_PRODUCTION`."""
    words = _words(name)
    for denial, production in pairwise(words):
        if denial in _NOT_PRODUCTION and _PRODUCTION.fullmatch(production):
            return _NOT_PRODUCTION[denial]
    if words == ["pre"]:
        return Place.BEFORE_PRODUCTION
    found = [place for place, names in _WORDS.items() if any(word in names for word in words)]
    if any(_PRODUCTION.fullmatch(word) for word in words):
        found.append(Place.PRODUCTION)
    return min(found, default=Place.UNKNOWN)


def knows_environment(name: str) -> bool:
    """Return whether a name is one that environments have."""
    return place_of_environment(name) is not Place.UNKNOWN


def may_be_production(name: str) -> bool:
    """Return whether a change to an environment of this name may be one to production: `production-canary` is."""
    words = _words(name)
    denied = {index + 1 for index, word in enumerate(words) if word in _NOT_PRODUCTION}
    named = any(_PRODUCTION.fullmatch(word) and index not in denied for index, word in enumerate(words))
    return named or not knows_environment(name)


def _words(name: str) -> list[str]:
    return re.split(r"[-_.]", name.lower())
