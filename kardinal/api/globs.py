"""Globs in resources: `*` stands for any characters of a segment, `**` for any number of whole segments.

Segments are what `/` divides. What is special in globs elsewhere (`?`, `[a-z]`, `{a,b}`, `!`) is refused by the schema
rather than taken for itself: a pattern that matches nothing by mistake is a gate that holds nothing. `**` may stand
once in a pattern, and segments are few, so that comparing them from the front and from the end decides at once.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import Field

__all__ = ["BranchGlob", "Globs", "NameGlob", "PathGlob", "RepositoryGlob"]

_Pattern = TypeVar("_Pattern", bound=str)


def _rules() -> dict[str, Any]:
    return {
        "x-kubernetes-validations": [
            {
                "rule": "!self.matches('[^/][*][*]|[*][*][^/]|[*][*].*[*][*]')",
                "message": "** stands for whole segments, as in a/**, and at most once",
            },
            {"rule": "!self.matches('(^|/)[.][.](/|$)')", "message": "must not have .. segments"},
            {"rule": "!self.matches('(/[^/]*){16}')", "message": "must not have more than 16 segments"},
            {"rule": "!self.matches('([*][^*]*){9}')", "message": "must not have more than 8 asterisks"},
        ]
    }


NameGlob = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[-a-z0-9.*]+$")]
RepositoryGlob = Annotated[
    str,
    Field(min_length=1, max_length=512, pattern=r"^[^\x00-\x1f\x7f?#%;{}\\|^!]+$", json_schema_extra=_rules()),
]
BranchGlob = Annotated[
    str,
    Field(min_length=1, max_length=244, pattern=r"^[^\x00-\x20\x7f?\[\]{}\\|^!~:]+$", json_schema_extra=_rules()),
]
PathGlob = Annotated[
    str,
    Field(min_length=1, max_length=512, pattern=r"^[^\x00-\x1f\x7f?\[\]{}\\|^!]+$", json_schema_extra=_rules()),
]

Globs = Annotated[tuple[_Pattern, ...], Field(min_length=1, max_length=32)]
"""Patterns of which one must match."""
