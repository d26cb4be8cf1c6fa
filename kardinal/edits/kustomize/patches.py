"""Patches in the semantics of kustomize: strategic merge patches and JSON patches, on plain values.

Lists of containers are merged by name in the kinds that Kubernetes knows; every other list is replaced. If the target
of a patch cannot be determined, this matters only if the patch may change an image.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kardinal.edits.kustomize.manifests import Mapping, UnreadableManifest, Value, Volume, mapping, sequence, text_of

__all__ = ["PatchTarget", "PatchedResource", "apply_json_patch", "is_json_patch", "merge", "touches_images"]

_BY_NAME = frozenset(("containers", "initContainers", "ephemeralContainers", "volumes"))
_KNOWN = frozenset((("", "v1"), ("apps", "v1"), ("batch", "v1")))
_POD_PATH = frozenset(("", "spec", "template", "jobTemplate", "containers", "initContainers", "-"))
_LITERAL = re.compile(r"[A-Za-z0-9._/-]*")
_MOST_WILDCARDS = 2
_LONGEST_NAME = 1_024
_INDEX = re.compile(r"[0-9]{1,6}")


@dataclass(slots=True)
class PatchedResource:
    """One resource on its way through the layers, with all names that it has had."""

    body: Mapping
    file: str
    names: set[str] = field(default_factory=set)
    _name: str = ""

    def __post_init__(self) -> None:
        self._name = text_of(mapping(self.body.get("metadata")).get("name"))
        self.names.add(self._name)

    @property
    def kind(self) -> str:
        return text_of(self.body.get("kind"))

    @property
    def title(self) -> str:
        return f"{self.kind} {text_of(mapping(self.body.get('metadata')).get('name'))}"

    @property
    def api(self) -> tuple[str, str]:
        """The group and version."""
        group, slash, version = text_of(self.body.get("apiVersion")).rpartition("/")
        return (group, version) if slash else ("", version)

    def rename(self, prefix: str, suffix: str) -> None:
        self._name = f"{prefix}{self._name}{suffix}"
        if len(self._name) > _LONGEST_NAME:
            raise UnreadableManifest("a name is too long")
        self.names.add(self._name)


@dataclass(frozen=True, slots=True)
class PatchTarget:
    """The resources that a patch applies to."""

    group: str = ""
    version: str = ""
    kind: str = ""
    name: str = ""

    @classmethod
    def selector(cls, value: Mapping) -> PatchTarget:
        """Parse the field `target`; raises `UnreadableManifest` for a selector that is not evaluated here."""
        if value.get("labelSelector") or value.get("annotationSelector") or value.get("namespace"):
            raise UnreadableManifest("a patch selects by labels, annotations or namespace")
        return cls(*(text_of(value.get(key)) for key in ("group", "version", "kind", "name")))

    @classmethod
    def of(cls, patch: Mapping) -> PatchTarget:
        """Return the target that a strategic merge patch itself names."""
        group, slash, _version = text_of(patch.get("apiVersion")).rpartition("/")
        name = text_of(mapping(patch.get("metadata")).get("name"))
        return cls(group if slash else "", "", text_of(patch.get("kind")), name)

    def selects(self, resource: PatchedResource) -> bool:
        group, version = resource.api
        return (
            _fits(self.group, group)
            and _fits(self.version, version)
            and _fits(self.kind, resource.kind)
            and any(_fits(self.name, name) for name in resource.names)
        )


def merge(resource: PatchedResource, patch: Mapping, volume: Volume) -> bool:
    """Apply a strategic merge patch; return False if it deletes the resource."""
    _charge(patch, volume)
    if patch.get("$patch") == "delete":
        return False
    _merge_mappings(resource.body, patch, by_name=_by_name(resource))
    return True


def _by_name(resource: PatchedResource) -> bool | None:
    """Return whether kustomize knows how to merge the lists of a resource; None if that depends on its version."""
    group, version = resource.api
    if (group, version) in _KNOWN:
        return True
    return False if "." in group and not group.endswith(".k8s.io") else None


def is_json_patch(patch: Value) -> bool:
    """Return whether a document is a list of JSON patch operations."""
    return isinstance(patch, list) and all(isinstance(item, dict) and "op" in item for item in patch)


def apply_json_patch(body: Mapping, operations: list[Value], volume: Volume) -> None:
    """Apply JSON patch operations in place.

    Raises `UnreadableManifest` for an operation that does not fit, on which kustomize fails.
    """
    for one in operations:
        operation = mapping(one)
        path = _pointer(operation.get("path"))
        source = operation.get("from")
        match text_of(operation.get("op")):
            case "add":
                _put(body, path, _copied(operation.get("value"), volume), insert=True)
            case "replace":
                _put(body, path, _copied(operation.get("value"), volume), insert=False)
            case "remove":
                _take(body, path)
            case "move":
                _put(body, path, _take(body, _pointer(source)), insert=True)
            case "copy":
                _put(body, path, _copied(_look(body, _pointer(source)), volume), insert=True)
            case "test":
                pass
            case other:
                raise UnreadableManifest(f"a JSON patch has the operation {other[:20]!r}")


def touches_images(patch: Value) -> bool:
    """Return whether a patch may change the set of images."""
    if is_json_patch(patch):
        return any(_touches(mapping(operation)) for operation in sequence(patch))
    return any(key in ("image", "$patch") for key in _keys(patch))


def _touches(operation: Mapping) -> bool:
    segments = text_of(operation.get("path")).split("/")
    whole = all(segment in _POD_PATH or _INDEX.fullmatch(segment) for segment in segments)
    return "image" in segments or whole or any(key == "image" for key in _keys(operation.get("value")))


def _keys(value: Value) -> Iterator[str]:
    pending: list[Value] = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, list):
            pending += one
        elif isinstance(one, dict):
            yield from one
            pending += one.values()


def _fits(pattern: str, text: str) -> bool:
    """Compare like the regular expressions in a selector of kustomize, of which only a few forms are supported."""
    if not pattern:
        return True
    return any(_fits_one(part, text) for part in pattern.removeprefix("^").removesuffix("$").split("|"))


def _fits_one(pattern: str, text: str) -> bool:
    parts = pattern.split(".*")
    if len(parts) > _MOST_WILDCARDS + 1 or not all(_LITERAL.fullmatch(part) for part in parts):
        raise UnreadableManifest(f"a patch selects by the pattern {pattern[:60]!r}")
    return re.fullmatch(".*".join(map(re.escape, parts)), text) is not None


def _merge_mappings(target: Mapping, patch: Mapping, *, by_name: bool | None) -> None:
    if patch.get("$patch") == "replace":
        target.clear()
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        there = target.get(key)
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            if value.get("$patch") == "delete":
                target.pop(key, None)
                continue
            into = target[key] = there if isinstance(there, dict) else {}
            _merge_mappings(into, value, by_name=by_name)
        elif isinstance(value, list) and isinstance(there, list) and by_name is not False and key in _BY_NAME:
            if by_name is None:
                raise UnreadableManifest("a patch changes containers of a kind that not every kustomize knows")
            target[key] = _merged_by_name(there, value)
        else:
            target[key] = _without_directives(value)


def _merged_by_name(there: list[Value], patch: list[Value]) -> list[Value]:
    directives = [mapping(item).get("$patch") for item in patch if "name" not in mapping(item)]
    if "replace" in directives:
        return [item for item in patch if "name" in mapping(item)]
    merged = list(there)
    for item in patch:
        entry = mapping(item)
        same = next((one for one in merged if mapping(one).get("name") == entry.get("name")), None)
        if entry.get("$patch") == "delete":
            merged = [one for one in merged if one is not same]
        elif isinstance(same, dict):
            _merge_mappings(same, entry, by_name=True)
        else:
            merged.append(_without_directives(item))
    return merged


def _charge(value: Value, volume: Volume) -> None:
    """Count the values of a patch again for each resource it is applied to, because there may be thousands."""
    pending: list[Value] = [value]
    while pending:
        one = pending.pop()
        volume.take(values=1)
        if isinstance(one, list):
            pending += one
        elif isinstance(one, dict):
            pending += one.values()


def _copied(value: Value, volume: Volume) -> Value:
    """Return a deep copy, so that no two places share a value; a patch that copies copies would grow without end."""
    volume.take(values=1)
    if isinstance(value, dict):
        return {key: _copied(item, volume) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item, volume) for item in value]
    return value


def _without_directives(value: Value) -> Value:
    if isinstance(value, dict):
        return {key: _without_directives(item) for key, item in value.items() if not key.startswith("$")}
    if isinstance(value, list):
        return [_without_directives(item) for item in value]
    return value


def _pointer(value: Value) -> list[str]:
    text = text_of(value)
    if not text.startswith("/"):
        raise UnreadableManifest("a JSON patch has no path that begins with /")
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def _look(value: Value, path: list[str]) -> Value:
    for segment in path:
        if isinstance(value, dict) and segment in value:
            value = value[segment]
        elif isinstance(value, list) and _INDEX.fullmatch(segment) and int(segment) < len(value):
            value = value[int(segment)]
        else:
            raise UnreadableManifest(f"a JSON patch names /{'/'.join(path)[:80]}, which is not there")
    return value


def _put(body: Mapping, path: list[str], value: Value, *, insert: bool) -> None:
    holder = _look(body, path[:-1])
    last = path[-1]
    if isinstance(holder, dict):
        holder[last] = value
    elif isinstance(holder, list) and last == "-":
        holder.append(value)
    elif isinstance(holder, list) and _INDEX.fullmatch(last) and int(last) <= len(holder):
        if insert:
            holder.insert(int(last), value)
        else:
            holder[int(last) : int(last) + 1] = [value]
    else:
        raise UnreadableManifest(f"a JSON patch names /{'/'.join(path)[:80]}, which is not there")


def _take(body: Mapping, path: list[str]) -> Value:
    holder = _look(body, path[:-1])
    last = path[-1]
    taken = _look(holder, [last])
    if isinstance(holder, dict):
        del holder[last]
    elif isinstance(holder, list):
        del holder[int(last)]
    return taken
