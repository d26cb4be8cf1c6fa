"""Asking image registries which digests the tags of Bundles have.

lookups        which Bundles are asked for, and what was found
registry       one question to a registry
challenge      what a registry wants to see before it answers, and where its token service is
pull_secrets   the credentials for registries
errors         why there is no answer
"""

from kardinal_controller.registries.lookups import TagLookups
from kardinal_controller.registries.registry import FLAG, Registry

__all__ = ["FLAG", "Registry", "TagLookups"]
