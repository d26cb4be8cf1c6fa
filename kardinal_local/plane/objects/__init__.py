"""Operations on objects: the rules between a decoded request and the storage.

    objects                            create, update, patch, apply
    deletion                           at once or in stages
    lists, continuing, freshness       reading many of them as they were
    selectors, list_options, revisions what a request asks for
    composition, metadata, admission   the rules a document has to follow: pure

Knows nothing of HTTP.
"""

from kardinal_local.plane.objects.composition import viewed
from kardinal_local.plane.objects.deletion import Deleted, Deletion, is_terminating, release
from kardinal_local.plane.objects.deletion_options import (
    FOREGROUND,
    ORPHAN,
    DeletionOptions,
    dry_run_problems,
    parse_deletion_options,
)
from kardinal_local.plane.objects.field_selectors import parse_fields
from kardinal_local.plane.objects.label_selectors import parse_labels
from kardinal_local.plane.objects.list_options import ListOptions, parse_list_options, truth
from kardinal_local.plane.objects.lists import Lists
from kardinal_local.plane.objects.objects import Guard, Objects, WriteOptions, Written
from kardinal_local.plane.objects.revisions import parse_revision
from kardinal_local.plane.objects.scales import SCALE_KIND, applied, read_scale, rescaled, scale_of
from kardinal_local.plane.objects.selectors import Selector
from kardinal_local.plane.objects.typing import Source

__all__ = [
    "FOREGROUND",
    "ORPHAN",
    "SCALE_KIND",
    "Deleted",
    "Deletion",
    "DeletionOptions",
    "Guard",
    "ListOptions",
    "Lists",
    "Objects",
    "Selector",
    "Source",
    "WriteOptions",
    "Written",
    "applied",
    "dry_run_problems",
    "is_terminating",
    "parse_deletion_options",
    "parse_fields",
    "parse_labels",
    "parse_list_options",
    "parse_revision",
    "read_scale",
    "release",
    "rescaled",
    "scale_of",
    "truth",
    "viewed",
]
