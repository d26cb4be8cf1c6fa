"""The names that a program executes: steps, providers and health adapters.

Both translation and the agent refuse a name that is not registered. The tables are built by `kardinal.extensions` at
the composition roots, from the built-in entries and from those of other packages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kardinal.objects.capabilities import Capabilities
from kardinal.promotion.api.health_adapters import AdapterDeclaration
from kardinal.promotion.steps.sequence import StepTable

__all__ = ["Registry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """Every step, provider and health adapter that a program executes, by name."""

    steps: StepTable
    providers: Mapping[str, Capabilities]
    adapters: Mapping[str, AdapterDeclaration]
