"""Route a request line to a verb, a kind, a namespace, a name and a subresource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from kardinal_local.plane.errors import LocalPlaneError, StatusError
from kardinal_local.plane.kinds import Kind, Registry
from kardinal_local.plane.objects import truth
from kardinal_local.plane.statuses import bad_request, method_not_allowed, not_found

__all__ = ["NoSuchPath", "Target", "flag", "resolve", "unknown_path", "verb_of"]

_FALSE = {"0", "false"}
_VERBS = {
    "GET": ("list", "get"),
    "POST": ("create", "create"),
    "PUT": ("update", "update"),
    "PATCH": ("patch", "patch"),
    "DELETE": ("deletecollection", "delete"),
}


class NoSuchPath(LocalPlaneError):
    """Nothing that this server knows begins like this path; it says so in plain text."""


@dataclass(frozen=True, slots=True)
class Target:
    """A collection when `name` is empty, otherwise one object or one of its subresources."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def resolve(path: str, registry: Registry) -> Target:
    """What a resource path speaks of; refused when this server has nothing there."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    match parts:
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            raise NoSuchPath(path)
    if any("/" in part for part in parts):
        raise unknown_path()
    target = _in_version(registry, group, version, rest)
    if target is None:
        # The router of a built-in group knows what it has not; the other groups have no router.
        raise unknown_path() if _is_builtin(registry, group) else NoSuchPath(path)
    if target.name and not target.kind.stored:
        raise unknown_path()
    if target.subresource not in {"", *(one.name for one in target.kind.subresources)}:
        raise not_found(target.kind, target.name) if target.kind.custom else unknown_path()
    return target


def verb_of(method: str, target: Target, query: Mapping[str, str]) -> str:
    """The verb, as audit and access reviews name it; 405 when the target knows no such thing."""
    kind = target.kind
    if method == "HEAD" and kind.custom:
        method = "GET"
    of_collection, of_object = _VERBS.get(method, ("", ""))
    verb = of_object if target.name else of_collection
    if verb == "list" and truth(query.get("watch")):
        verb = "watch"
    if kind.custom:
        return _allowed_of_custom(verb, target)
    nameless = verb in {"update", "patch"} and not target.name
    everywhere = kind.namespaced and not target.namespace and verb in {"create", "deletecollection"}
    below = next((one for one in kind.subresources if one.name == target.subresource), None)
    creates_by_name = verb == "create" and bool(target.name) and below is None
    allowed = kind.verbs if below is None else below.verbs
    if verb not in allowed or nameless or everywhere or creates_by_name:
        raise method_not_allowed()
    return verb


def _allowed_of_custom(verb: str, target: Target) -> str:
    """The same for what no router has judged before."""
    kind = target.kind
    if not verb or (target.subresource and verb not in {"get", "update", "patch"}):
        message = f'{verb} is not supported on resources of kind "{kind.qualified}"'
        details = {"group": kind.group, "kind": kind.plural}
        raise StatusError(405, "MethodNotAllowed", message, details=details)
    if verb in {"update", "patch"} and not target.name:
        raise bad_request("name must be provided")
    if verb == "create" and kind.namespaced and not target.namespace:
        raise NoSuchPath(kind.qualified)
    return verb


def flag(query: Mapping[str, str], name: str) -> bool:
    """A boolean parameter: present, it is true unless it is false or 0, however it is spelt."""
    return name in query and query[name].lower() not in _FALSE


def unknown_path() -> StatusError:
    return StatusError(404, "NotFound", "the server could not find the requested resource", details={})


def _is_builtin(registry: Registry, group: str) -> bool:
    return any(kind.group == group and not kind.custom for kind in registry.kinds())


def _in_version(registry: Registry, group: str, version: str, rest: list[str]) -> Target | None:
    match rest:
        case ["namespaces", namespace, plural, *names] if namespace and (
            (kind := registry.find(group, version, plural)) is not None and kind.namespaced
        ):
            name, subresource = _names(names)
            return Target(kind, namespace, name, subresource)
        case [plural, *names] if (kind := registry.find(group, version, plural)) is not None:
            name, subresource = _names(names)
            if kind.namespaced and (name or not kind.stored):
                return None
            return Target(kind, "", name, subresource)
    return None


def _names(names: list[str]) -> tuple[str, str]:
    match names:
        case []:
            return "", ""
        case [name]:
            return name, ""
        case [name, subresource]:
            return name, subresource
    raise unknown_path()
