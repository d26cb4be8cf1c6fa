"""The commands of `kardinal_local` as their users meet them."""

from __future__ import annotations

from tests.resilience.processes import shell

__all__ = ["shell"]
