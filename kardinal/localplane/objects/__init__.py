"""What may be done to objects, between a decoded request and the storage.

    objects                            create, update, patch, apply
    deletion                           at once or in stages
    lists, continuing, freshness       reading many of them as they were
    selectors, list_options, revisions what a request asks for
    composition, metadata, admission   the rules a document has to follow: pure

Knows nothing of HTTP.
"""

from kardinal.localplane.objects.composition import viewed
from kardinal.localplane.objects.deletion import Deleted, Deletion, is_terminating, release
from kardinal.localplane.objects.deletion_options import (
    FOREGROUND,
    ORPHAN,
    DeletionOptions,
    dry_run_problems,
    parse_deletion_options,
)
from kardinal.localplane.objects.field_selectors import parse_fields
from kardinal.localplane.objects.label_selectors import parse_labels
from kardinal.localplane.objects.list_options import ListOptions, parse_list_options, truth
from kardinal.localplane.objects.lists import Lists
from kardinal.localplane.objects.objects import Guard, Objects, WriteOptions, Written
from kardinal.localplane.objects.revisions import parse_revision
from kardinal.localplane.objects.scales import SCALE_KIND, applied, read_scale, rescaled, scale_of
from kardinal.localplane.objects.selectors import Selector
from kardinal.localplane.objects.typing import Source

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
