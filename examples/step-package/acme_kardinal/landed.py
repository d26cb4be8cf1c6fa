"""`acme-landed`: an environment without workloads, such as a bucket of static files, is proven by what has landed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kardinal.promotion.api.health_adapters import AdapterDeclaration

__all__ = ["LANDED"]


def _adapter() -> Any:
    return import_module("acme_kardinal.landed_adapter").Landed()


LANDED = AdapterDeclaration(name="acme-landed", adapter=_adapter)
