"""The programs as their users meet them: nothing but commands, manifests, Git and an API."""

from __future__ import annotations

from tests.resilience.installation import install
from tests.resilience.processes import shell

__all__ = ["install", "shell"]
