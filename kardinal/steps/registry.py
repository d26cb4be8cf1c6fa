"""The names that a program executes: steps, providers and health adapters.

Translation refuses a name that is not here, and so does the agent. The tables are built at the composition roots
(`kardinal.extensions`), from what is built in and from packages of others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kardinal.steps.capabilities import Capabilities
from kardinal.steps.sequence import StepTable

__all__ = ["BUILTIN_ADAPTERS", "AdapterDeclaration", "Registry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterDeclaration:
    """A health adapter: a value of `health.type`.

    `adapter` makes the agent's part of an adapter of another package; those built in are in `kardinal_agent.health`.
    """

    name: str
    adapter: Callable[[], Any] | None = None


BUILTIN_ADAPTERS: Final[Mapping[str, AdapterDeclaration]] = {
    name: AdapterDeclaration(name=name) for name in ("resource", "argocd", "flux", "argoRollouts", "flagger")
}
"""Every health adapter of this version, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """Every step, provider and health adapter that a program executes, by name."""

    steps: StepTable
    providers: Mapping[str, Capabilities]
    adapters: Mapping[str, AdapterDeclaration]
