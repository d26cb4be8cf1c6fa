"""Kinds: what the server knows of each, where they come from, and which are served.

    kind            one kind: names, scope, schema, columns
    subresource_types   status, scale, and those of one kind alone
    registry        those that are served right now
    crds            CustomResourceDefinitions, and the kinds they bring
    specification   what a definition has to be
    subresources    the paths it names beside its schema
    naming          which of its names it gets

Built on schemas and tables; the kinds that are always there are in `builtin`.
"""

from kardinal_local.plane.kinds.kind import Kind, Typed, View
from kardinal_local.plane.kinds.registry import Registry
from kardinal_local.plane.kinds.subresource_types import ScalePaths

__all__ = ["Kind", "Registry", "ScalePaths", "Typed", "View"]
