"""Globs in resources: `*` stands for any characters of a segment, `**` for any number of whole segments.

Segments are separated by `/`: `environments/*/prod` has three. Other special characters of globs (`?`, `[a-z]`,
`{a,b}`, `!`) are refused by the schema instead of being read literally, because a pattern that matches nothing by
mistake is a gate that holds nothing. `**` is allowed once per pattern, and the number of segments is limited, so a
pattern can be compared from both ends in linear time.
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
"""A list of patterns, of which at least one must match."""
