"""The attributes of a request that authorization rules are written in: verb, group, resource, name.

It is known from the request line alone, before anything else is: who may not ask gets no other answer, not even
that what was asked for does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass

from kardinal_local.plane.errors import StatusError
from kardinal_local.plane.security.rules import quoted
from kardinal_local.plane.security.users import User

__all__ = ["Attributes", "forbidden"]

_SAFE_FOR_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True, slots=True)
class Attributes:
    """A verb on a resource, or on a `path` that is none; an empty `name` is a collection."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def full_resource(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def forbidden(user: User, asked: Attributes, *, reason: str = "") -> StatusError:
    """403, in the real server's words."""
    told = _told(user, asked).translate(_SAFE_FOR_HTML)
    explanation = f"{told}: {reason}" if reason else told
    if asked.path:
        return StatusError(403, "Forbidden", f"forbidden: {explanation}", details={})
    qualified = f"{asked.resource}.{asked.group}" if asked.group else asked.resource
    subject = f"{qualified} {quoted(asked.name)}" if asked.name else qualified
    details = {"name": asked.name, "group": asked.group, "kind": asked.resource}
    return StatusError(
        403,
        "Forbidden",
        f"{subject} is forbidden: {explanation}",
        details={key: value for key, value in details.items() if value},
    )


def _told(user: User, asked: Attributes) -> str:
    if asked.path:
        return f"User {quoted(user.name)} cannot {asked.verb} path {quoted(asked.path)}"
    where = f"in the namespace {quoted(asked.namespace)}" if asked.namespace else "at the cluster scope"
    return (
        f"User {quoted(user.name)} cannot {asked.verb} resource {quoted(asked.full_resource)} "
        f"in API group {quoted(asked.group)} {where}"
    )
