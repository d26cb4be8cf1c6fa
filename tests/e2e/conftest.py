"""The programs as their users meet them: nothing but commands, manifests, Git and an API."""

from __future__ import annotations

from tests.baddays.installation import install
from tests.baddays.processes import shell

__all__ = ["install", "shell"]
