"""Check the approval annotation of definitions in the groups of the Kubernetes project.

Their annotation names the decision, or says that there is none. A definition without it is refused; what it says
becomes a condition, for people to see.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.kinds.naming import set_condition
from kardinal_local.plane.schemas.causes import invalid, required

__all__ = ["approval_causes", "note_approval"]

_ANNOTATION: Final = "api-approved.kubernetes.io"
_HELP: Final = "see https://github.com/kubernetes/enhancements/pull/1111"
_CONFORMANT: Final = "KubernetesAPIApprovalPolicyConformant"


def approval_causes(document: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """What is wrong with the annotation, where it has to be; not that it always was."""
    said = _annotation(document)
    if not _is_protected(document) or (old is not None and _state(said) == _state(_annotation(old))):
        return
    place = f"metadata.annotations[{_ANNOTATION}]"
    words = f'protected groups must have approval annotation "{_ANNOTATION}"'
    match _state(said):
        case "missing":
            yield required(place, f"{words}, {_HELP}")
        case "invalid":
            either = 'with either a URL or a reason starting with "unapproved"'
            yield invalid(place, said, f"{words} {either}, {_HELP}")


def note_approval(document: JsonObject, *, now: datetime) -> bool:
    """Say in the status what the annotation says; whether that is news."""
    if not _is_protected(document):
        return False
    said, before = _annotation(document), document["status"].get("conditions")
    match _state(said):
        case "approved":
            set_condition(document, _CONFORMANT, "True", "ApprovedAnnotation", f"approved in {said}", now=now)
        case "unapproved":
            set_condition(document, _CONFORMANT, "False", "UnapprovedAnnotation", f'not approved: "{said}"', now=now)
    return bool(document["status"].get("conditions") != before)


def _is_protected(document: JsonObject) -> bool:
    group = (document.get("spec") or {}).get("group") or ""
    return re.search(r"(^|\.)(k8s|kubernetes)\.io$", group) is not None


def _annotation(document: JsonObject) -> str:
    return str((document["metadata"].get("annotations") or {}).get(_ANNOTATION) or "")


def _state(annotation: str) -> str:
    if not annotation:
        return "missing"
    if annotation.startswith("unapproved"):
        return "unapproved"
    parts = urlsplit(annotation)
    return "approved" if parts.scheme and parts.netloc else "invalid"
