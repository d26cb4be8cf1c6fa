"""The providers: what each one offers to Pipelines, in one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kardinal.steps.capabilities import Capabilities

__all__ = ["PROVIDERS", "Provider"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A host of repositories: a value of `git.provider`."""

    name: str
    capabilities: Capabilities


PROVIDERS: Final[Mapping[str, Provider]] = {
    provider.name: provider
    for provider in (
        Provider(name="git", capabilities=Capabilities(pull_requests=False)),
        Provider(name="local", capabilities=Capabilities(pull_requests=True, local=True)),
    )
}
"""Every provider of this version, by name."""
