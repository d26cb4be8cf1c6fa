"""`acme-git`: a Git host without pull requests; one with them has `connect` and `authenticate` as well."""

from __future__ import annotations

from kardinal.objects.capabilities import Capabilities
from kardinal.scm.provider import Provider

__all__ = ["ACME_GIT"]

ACME_GIT = Provider(name="acme-git", capabilities=Capabilities(pull_requests=False))
