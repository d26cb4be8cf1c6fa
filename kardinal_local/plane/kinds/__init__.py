"""What the server knows of a kind, where the kinds come from, and which are served.

    kind            one kind: names, scope, schema, columns
    below           what hangs below an object: status, scale
    registry        those that are served right now
    crds            CustomResourceDefinitions, and the kinds they bring
    specification   what a definition has to be
    subresources    the paths it names beside its schema
    naming          which of its names it gets
    versions        which of its versions is the best

Built on schemas and tables; the kinds that are always there are in `builtin`.
"""

from kardinal_local.plane.kinds.below import ScalePaths
from kardinal_local.plane.kinds.kind import Kind, Typed, View
from kardinal_local.plane.kinds.registry import Registry

__all__ = ["Kind", "Registry", "ScalePaths", "Typed", "View"]
