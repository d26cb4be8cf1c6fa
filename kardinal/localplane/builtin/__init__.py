"""The kinds that are served without a CRD.

kinds                                       the list of them
schemas                                     their schemas by group, version and kind
metadata, containers, pods, workloads       what those share
builders                                    the words they are written in
events                                      the two spellings of an Event
"""

from kardinal.localplane.builtin.kinds import BUILTIN_KINDS, CUSTOM_RESOURCE_DEFINITION, NAMESPACE
from kardinal.localplane.builtin.metadata import OBJECT_META, with_metadata
from kardinal.localplane.builtin.schemas import builtin_schema

__all__ = [
    "BUILTIN_KINDS",
    "CUSTOM_RESOURCE_DEFINITION",
    "NAMESPACE",
    "OBJECT_META",
    "builtin_schema",
    "with_metadata",
]
