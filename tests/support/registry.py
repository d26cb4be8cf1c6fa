"""The steps, providers and health adapters that are built in."""

from __future__ import annotations

from kardinal.extensions import load_extensions

__all__ = ["EXTENSIONS", "REGISTRY"]

EXTENSIONS = load_extensions()
REGISTRY = EXTENSIONS.registry
