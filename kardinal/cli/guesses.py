"""Guess the provider of a repository from its host, and the order of environments from their names (pure).

A wrong guess costs a moment if it asks for a review, and may cost an outage if it does not. So an environment with an
unknown name is treated as if it could be production.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from itertools import pairwise

from kardinal.promotion.api.pipeline import ProviderName
from kardinal.tree.repository_url import InvalidRepositoryURL, RepositoryURL, is_local_spelling

__all__ = ["EnvironmentRank", "knows_environment", "may_be_production", "place_of_environment", "provider_of"]

_HOSTS: Mapping[str, ProviderName] = {
    "github.com": "github",
    "ssh.github.com": "github",
    "gitlab.com": "gitlab",
    "altssh.gitlab.com": "gitlab",
    "codeberg.org": "forgejo",
}
"""The providers of well-known hosts."""


class EnvironmentRank(IntEnum):
    """The place of an environment in the order of a Pipeline; an unknown name comes right after staging."""

    DEVELOPMENT = 0
    TEST = 1
    STAGING = 2
    UNKNOWN = 3
    BEFORE_PRODUCTION = 4
    PRODUCTION = 5


_WORDS: Mapping[EnvironmentRank, frozenset[str]] = {
    EnvironmentRank.DEVELOPMENT: frozenset(("dev", "develop", "development", "local", "sandbox")),
    EnvironmentRank.TEST: frozenset(("test", "testing", "qa", "int", "integration", "ci", "nonprod", "nonproduction")),
    EnvironmentRank.STAGING: frozenset(("uat", "stage", "staging", "stg", "acceptance")),
    EnvironmentRank.BEFORE_PRODUCTION: frozenset(("preprod", "preproduction", "canary")),
    EnvironmentRank.PRODUCTION: frozenset(("prod", "production", "prd", "live")),
}
_PRODUCTION = re.compile(r"(prod|production|prd|live)\d*")
_NOT_PRODUCTION = {
    "non": EnvironmentRank.TEST,
    "not": EnvironmentRank.TEST,
    "no": EnvironmentRank.TEST,
    "pre": EnvironmentRank.BEFORE_PRODUCTION,
}
"""Words that negate a following word for production: `non-prod`, `pre-prod`."""


def provider_of(url: str) -> ProviderName | None:
    """Return the provider of a repository, `git@github.com:acme/gitops` → `github`; None for an unknown host."""
    if is_local_spelling(url):
        return "local"
    try:
        host = RepositoryURL.parse(url, allow_local=False).host
    except InvalidRepositoryURL:
        return None
    return _HOSTS.get(host.partition(":")[0])


def place_of_environment(name: str) -> EnvironmentRank:
    """Return the place of an environment by its name: `pre-prod` → `Place.BEFORE_PRODUCTION`.

    Of several known words in the name, the earliest place counts: `dev-canary` → `Place.DEVELOPMENT`.
    """
    words = _words(name)
    for denial, production in pairwise(words):
        if denial in _NOT_PRODUCTION and _PRODUCTION.fullmatch(production):
            return _NOT_PRODUCTION[denial]
    if words == ["pre"]:
        return EnvironmentRank.BEFORE_PRODUCTION
    found = [place for place, names in _WORDS.items() if any(word in names for word in words)]
    if any(_PRODUCTION.fullmatch(word) for word in words):
        found.append(EnvironmentRank.PRODUCTION)
    return min(found, default=EnvironmentRank.UNKNOWN)


def knows_environment(name: str) -> bool:
    """Return whether a name has a word that is common for environments: `prod-eu` has, `shop` has not."""
    return place_of_environment(name) is not EnvironmentRank.UNKNOWN


def may_be_production(name: str) -> bool:
    """Return whether an environment of this name may be production: `production-canary` and unknown names may be."""
    words = _words(name)
    denied = {index + 1 for index, word in enumerate(words) if word in _NOT_PRODUCTION}
    named = any(_PRODUCTION.fullmatch(word) and index not in denied for index, word in enumerate(words))
    return named or not knows_environment(name)


def _words(name: str) -> list[str]:
    return re.split(r"[-_.]", name.lower())
