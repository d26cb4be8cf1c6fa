"""The extensions of a program: the built-in steps, providers, health adapters and metric providers, and installed ones.

A package adds its own by entry points. It must be installed in both programs, because the control plane refuses names
that it does not know:

    [project.entry-points."kardinal.steps"]       name -> `kardinal.promotion.steps.declaration.StepDeclaration`
    [project.entry-points."kardinal.providers"]   name -> `kardinal.scm.provider.Provider`
    [project.entry-points."kardinal.health"]      name -> `kardinal.promotion.api.health_adapters.AdapterDeclaration`
    [project.entry-points."kardinal.metrics"]     name -> `kardinal.promotion.metrics.provider.MetricProvider`

A package that cannot be loaded, or takes a name that is taken, keeps the program from starting: running without it
would fail the Pipelines that name it, one promotion after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from kardinal.objects.errors import KardinalError
from kardinal.promotion.api.health_adapters import BUILTIN_ADAPTERS, AdapterDeclaration
from kardinal.promotion.metrics.prometheus import PROMETHEUS
from kardinal.promotion.metrics.provider import MetricProvider
from kardinal.promotion.steps.builtin import BUILTIN_STEPS
from kardinal.promotion.steps.declaration import StepDeclaration
from kardinal.promotion.steps.registry import Registry
from kardinal.scm import PROVIDERS, Delivery, Provider

__all__ = ["ExtensionError", "Extensions", "load_extensions", "webhook_parsers"]

BUILTIN_METRICS: Mapping[str, MetricProvider] = {PROMETHEUS.name: PROMETHEUS}

Named = TypeVar("Named", StepDeclaration, Provider, AdapterDeclaration, MetricProvider)


class ExtensionError(KardinalError):
    """A package that adds a step, a provider, a health adapter or a metric provider, and cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extensions:
    """Every step, provider, health adapter and metric provider of a program, by name."""

    steps: Mapping[str, StepDeclaration]
    providers: Mapping[str, Provider]
    adapters: Mapping[str, AdapterDeclaration]
    metrics: Mapping[str, MetricProvider]

    @property
    def registry(self) -> Registry:
        """Return the registry of these names for translation."""
        providers = {name: provider.capabilities for name, provider in self.providers.items()}
        return Registry(steps=self.steps, providers=providers, adapters=self.adapters)


def webhook_parsers(extensions: Extensions) -> dict[str, Callable[[Mapping[str, str], bytes, bytes], Delivery]]:
    """Return the parser of webhook deliveries by provider, for the providers that send them."""
    providers = extensions.providers.items()
    return {name: provider.parse_webhook for name, provider in providers if provider.parse_webhook is not None}


def load_extensions() -> Extensions:
    """Return the built-in extensions with those of installed packages. Raises `ExtensionError`."""
    return Extensions(
        steps=_extended(BUILTIN_STEPS, StepDeclaration, entry_points(group="kardinal.steps")),
        providers=_extended(PROVIDERS, Provider, entry_points(group="kardinal.providers")),
        adapters=_extended(BUILTIN_ADAPTERS, AdapterDeclaration, entry_points(group="kardinal.health")),
        metrics=_extended(BUILTIN_METRICS, MetricProvider, entry_points(group="kardinal.metrics")),
    )


def _extended(builtin: Mapping[str, Named], kind: type[Named], found: Iterable[EntryPoint]) -> dict[str, Named]:
    table = dict(builtin)
    for entry in sorted(found, key=lambda entry: entry.name):
        package = entry.dist.name if entry.dist else "unknown"
        where = f"entry point {entry.name} of {entry.group} in package {package}"
        try:
            loaded = entry.load()
        except Exception as error:  # foreign code: whatever it raises at its import
            raise ExtensionError(
                f"{where} cannot be loaded: {error}", remedy="Repair the package or remove it"
            ) from error
        if not isinstance(loaded, kind) or loaded.name != entry.name:
            raise ExtensionError(f"{where} is no {kind.__name__} named {entry.name}", remedy="Repair the package")
        if entry.name in table:
            raise ExtensionError(f"{where} takes a name that is taken", remedy="Give it another name")
        table[entry.name] = loaded
    return table
