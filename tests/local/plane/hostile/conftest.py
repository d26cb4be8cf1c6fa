"""A shell in which a plane runs as a process of its own."""

from __future__ import annotations

from tests.resilience.processes import shell

__all__ = ["shell"]
