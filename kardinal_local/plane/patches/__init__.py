"""JSON patch, merge patch and strategic merge patch (pure). Server-side apply is in `apply`.

operations   JSON patch
generic      merge patch
strategic    strategic merge patch, which needs a schema
"""

from kardinal_local.plane.patches.generic import merge_patch
from kardinal_local.plane.patches.operations import json_patch
from kardinal_local.plane.patches.strategic import go_text, strategic_merge

__all__ = ["go_text", "json_patch", "merge_patch", "strategic_merge"]
