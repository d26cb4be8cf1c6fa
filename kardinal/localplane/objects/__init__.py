"""What may be done to objects, between a decoded request and the storage.

    objects                            create, update, patch, apply
    deletion                           at once or in stages
    lists, selectors, revisions        reading many of them as they were
    composition, metadata, admission, roles   the rules a document has to follow: pure

Knows nothing of HTTP.
"""

from kardinal.localplane.objects.admission import NAMESPACE_FINALIZER
from kardinal.localplane.objects.composition import viewed
from kardinal.localplane.objects.deletion import (
    FOREGROUND,
    ORPHAN,
    Deleted,
    Deletion,
    DeletionOptions,
    is_terminating,
    parse_options,
    release,
)
from kardinal.localplane.objects.lists import Lists
from kardinal.localplane.objects.objects import Guard, Objects, WriteOptions, Written
from kardinal.localplane.objects.revisions import parse_revision, revision_too_large
from kardinal.localplane.objects.selectors import Selector, parse_fields, parse_labels

__all__ = [
    "FOREGROUND",
    "NAMESPACE_FINALIZER",
    "ORPHAN",
    "Deleted",
    "Deletion",
    "DeletionOptions",
    "Guard",
    "Lists",
    "Objects",
    "Selector",
    "WriteOptions",
    "Written",
    "is_terminating",
    "parse_fields",
    "parse_labels",
    "parse_options",
    "parse_revision",
    "release",
    "revision_too_large",
    "viewed",
]
