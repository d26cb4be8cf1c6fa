"""Ask image registries for the digests of the tags of Bundles.

lookups        the Bundles whose tags are looked up, and the results
registry       one request for a digest
challenge      the authentication that a registry demands, and its token service
pull_secrets   the credentials for registries
errors         the reasons why there is no answer
"""

from kardinal_controller.registries.lookups import TagLookups
from kardinal_controller.registries.registry import FLAG, RegistryClient

__all__ = ["FLAG", "RegistryClient", "TagLookups"]
