"""From a request line to what it is about: a verb, a kind, a namespace, a name, a subresource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from kardinal.localplane.errors import StatusError
from kardinal.localplane.kinds import Kind, Registry
from kardinal.localplane.statuses import bad_request

__all__ = ["Target", "flag", "resolve", "unknown_path", "verb_of"]

_TRUE = {"1", "t", "T", "TRUE", "true", "True"}
_FALSE = {"0", "f", "F", "FALSE", "false", "False", ""}
_VERBS = {
    "GET": ("list", "get"),
    "HEAD": ("list", "get"),
    "POST": ("create", "create"),
    "PUT": ("", "update"),
    "PATCH": ("", "patch"),
    "DELETE": ("deletecollection", "delete"),
}


@dataclass(frozen=True, slots=True)
class Target:
    """A collection when `name` is empty, otherwise one object or one of its subresources."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def resolve(path: str, registry: Registry) -> Target:
    """What a resource path speaks of; 404 when this server has nothing there."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    match parts:
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            raise unknown_path()
    target = _in_version(registry, group, version, rest)
    is_known = target is not None and target.subresource in _subresources(target.kind)
    if target is None or not is_known or (target.name and not target.kind.stored):
        raise unknown_path()
    return target


def verb_of(method: str, target: Target, query: Mapping[str, str]) -> str:
    """The verb, as audit and access reviews name it; 405 when the target knows no such thing."""
    of_collection, of_object = _VERBS.get(method, ("", ""))
    verb = of_object if target.name else of_collection
    if verb == "list" and flag(query, "watch"):
        verb = "watch"
    creates_by_name = verb == "create" and bool(target.name)
    if not verb or creates_by_name != (target.subresource == "token") or (not target.kind.stored and verb != "create"):
        raise StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    return verb


def flag(query: Mapping[str, str], name: str) -> bool:
    """A boolean parameter in any spelling that Go's ParseBool takes: Python clients send `True`."""
    value = query.get(name, "")
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise bad_request(f"{name}: {value!r} is not a boolean")


def unknown_path() -> StatusError:
    return StatusError(404, "NotFound", "the server could not find the requested resource")


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


def _subresources(kind: Kind) -> set[str]:
    if kind.qualified == "serviceaccounts":
        return {"", "token"}
    return {"", "status"} if kind.status else {""}
