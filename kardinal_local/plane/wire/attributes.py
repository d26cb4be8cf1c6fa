"""Read the authorization attributes of a request from its request line.

Authorization comes before routing, so that this knows no kind: `/apis/x.io/v1/things` asks for things of x.io whether
anybody serves them or not. The rules are those of the real server, with their oddities: a namespace is in the namespace
of its own name, and a list of one name asks for that name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

from kardinal_local.plane.security import Attributes

__all__ = ["attributes_of"]

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OF_NAMESPACES = frozenset({"status", "finalize"})
_ONE_NAME = re.compile(r"(?:^|,)metadata\.name==?([^,=!/%]+)(?:,|$)")


def attributes_of(method: str, path: str, query: Mapping[str, str]) -> Attributes:
    """What a request with this still encoded path asks for."""
    parts = path.strip("/").split("/")
    if "%" in path:
        parts = [unquote(part) for part in parts]
    if parts[0] == "api" and len(parts) > 2:
        group, parts = "", parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, parts = parts[1], parts[3:]
    else:
        return Attributes(method.lower(), path=unquote(path))
    verb, namespace = _VERBS.get(method, ""), ""
    if parts[0] == "watch" and len(parts) > 1:
        verb, parts = "watch", parts[1:]
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _OF_NAMESPACES:
            parts = parts[2:]
    resource, name, subresource = (*parts, "", "")[:3]
    if not name and verb in {"get", "watch"}:
        if verb == "get":
            verb = "watch" if _is_set(query, "watch") else "list"
        if match := _ONE_NAME.search(query.get("fieldSelector", "")):
            name = match[1]
    elif not name and verb == "delete":
        verb = "deletecollection"
    return Attributes(verb, group, resource, subresource, namespace, name)


def _is_set(query: Mapping[str, str], name: str) -> bool:
    return name in query and query[name].lower() not in {"false", "0"}
