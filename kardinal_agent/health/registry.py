"""The code of the health adapters by `health.type`; each has a declaration in `promotion.api.health_adapters`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kardinal.promotion.api.health_adapters import AdapterDeclaration
from kardinal_agent.errors import ConfigurationError
from kardinal_agent.health.argo_rollouts import ArgoRollouts
from kardinal_agent.health.argocd import ArgoCD
from kardinal_agent.health.flagger import Flagger
from kardinal_agent.health.flux import Flux
from kardinal_agent.health.resource import ResourceAdapter
from kardinal_agent.health.verdict import Adapter

__all__ = ["adapters"]

_BUILTIN: Sequence[Adapter] = (ResourceAdapter(), ArgoCD(), Flux(), ArgoRollouts(), Flagger())


def adapters(declarations: Mapping[str, AdapterDeclaration]) -> Mapping[str, Adapter]:
    """Return the adapter of every declaration. Raises `ConfigurationError` for one without code."""
    builtin = {adapter.name: adapter for adapter in _BUILTIN}
    return {name: builtin.get(name) or _made(declaration) for name, declaration in declarations.items()}


def _made(declaration: AdapterDeclaration) -> Adapter:
    if declaration.adapter is None:
        raise ConfigurationError(f"health adapter {declaration.name} declares no adapter")
    made: Adapter = declaration.adapter()
    return made
