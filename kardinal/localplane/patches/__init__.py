"""The patches that leave no claim behind; pure. An apply is no patch: see `apply`.

generic      JSON patch and merge patch, which need no schema
strategic    strategic merge patch, which does
"""

from kardinal.localplane.patches.generic import json_patch, merge_patch
from kardinal.localplane.patches.strategic import strategic_merge

__all__ = ["json_patch", "merge_patch", "strategic_merge"]
