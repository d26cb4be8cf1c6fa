"""The health adapters of an agent by `health.type`: those built in, and those of other packages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kardinal.api import PromotionStep
from kardinal.api.image import ImageReference
from kardinal.steps.registry import AdapterDeclaration
from kardinal_agent.errors import ConfigurationError
from kardinal_agent.health.verdict import HealthAdapter, Verdict

__all__ = ["HealthTable", "health_table"]


class HealthTable:
    """Asks the adapter that a PromotionStep names."""

    def __init__(self, adapters: Mapping[str, HealthAdapter]) -> None:
        self._adapters = adapters

    def refusal(self, step: PromotionStep) -> str | None:
        adapter = self._adapters.get(step.spec.health.type or "")
        if adapter is None:
            return f"health.type: {step.spec.health.type!r} is not available in this version"
        return adapter.refusal(step)

    def check(self, step: PromotionStep, images: Sequence[ImageReference]) -> Verdict:
        adapter = self._adapters.get(step.spec.health.type or "")
        if adapter is None:
            return Verdict(False, f"no health adapter is called {step.spec.health.type}")
        return adapter.check(step, images)


def health_table(declarations: Mapping[str, AdapterDeclaration], builtin: Mapping[str, HealthAdapter]) -> HealthTable:
    """Return the adapter of every declaration. Raises `ConfigurationError` for one without code."""
    return HealthTable({name: _adapter(declaration, builtin) for name, declaration in declarations.items()})


def _adapter(declaration: AdapterDeclaration, builtin: Mapping[str, HealthAdapter]) -> HealthAdapter:
    if declaration.name in builtin:
        return builtin[declaration.name]
    if declaration.adapter is None:
        raise ConfigurationError(f"health adapter {declaration.name} declares no adapter")
    made: HealthAdapter = declaration.adapter()
    return made
