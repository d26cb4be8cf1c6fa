"""The fields of a resource that contain images, and the effect of an entry of `images`, according to kustomize.

It is used to read a kustomization; `kustomization.set_images` edits one.

kustomize changes `image` in every list named `containers` or `initContainers`, at any depth and in any kind, and the
paths of its configuration. It compares the text of the field with the entry's `name`: there `docker.io/x/y` differs
from `x/y`, although both name the same repository.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kardinal.edits.kustomize.manifests import Mapping, UnreadableManifest, Value, mapping, sequence, text_of

__all__ = ["FieldSpec", "ImageEntry", "ImageField", "image_fields", "matches"]

_CONTAINERS = ("containers", "initContainers")
_REST = re.compile(r"(:[a-zA-Z0-9_.{}-]*)?(@sha256:[a-zA-Z0-9_.{}-]*)?")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_./:@-]*")
_LONGEST = 4_096
_DEFINITION = "CustomResourceDefinition"


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """A path to image fields, in every kind or in one."""

    path: str
    kind: str = ""

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(part.removesuffix("[]") for part in self.path.split("/") if part)


_DEFAULT_PATHS = (
    FieldSpec("spec/volumes[]/image/reference"),
    FieldSpec("spec/template/spec/volumes[]/image/reference"),
)


@dataclass(slots=True)
class ImageField:
    """One image field: the mapping that contains it, its key, and a description of the owner for people."""

    holder: Mapping
    key: str
    owner: str

    @property
    def text(self) -> str:
        return text_of(self.holder.get(self.key))


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageEntry:
    """One entry of `images`, with the fields that kustomize reads."""

    name: str
    new_name: str = ""
    new_tag: str = ""
    digest: str = ""
    tag_suffix: str = ""

    @classmethod
    def read(cls, value: Value) -> ImageEntry:
        item = mapping(value)
        name, new_name, new_tag, digest, suffix = (
            text_of(item.get(key)) for key in ("name", "newName", "newTag", "digest", "tagSuffix")
        )
        return cls(name=name, new_name=new_name, new_tag=new_tag, digest=digest, tag_suffix=suffix)

    def apply(self, text: str) -> str:
        """Return the image that kustomize makes of the image `text`."""
        if not matches(self.name, text):
            return text
        name, tag, digest = _split(text)
        name = self.new_name or name
        if self.new_tag or self.digest:
            tag = self.new_tag
            digest = self.digest
        elif self.tag_suffix:
            tag = tag + self.tag_suffix
            digest = ""
        applied = name + (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")
        if len(applied) > _LONGEST:
            raise UnreadableManifest("an image is too long")
        return applied


def matches(name: str, text: str) -> bool:
    """Return whether an entry with this name applies to an image."""
    if not _PLAIN_NAME.fullmatch(name):
        # kustomize takes the name as a regular expression of Go; names with special characters are not evaluated here.
        raise UnreadableManifest(f"images: the name {name[:60]!r} is a pattern")
    return text.startswith(name) and _REST.fullmatch(text, len(name)) is not None


def image_fields(body: Mapping, specs: Iterable[FieldSpec] = ()) -> Iterator[ImageField]:
    """Yield the fields of a resource that kustomize treats as images, each once."""
    kind = text_of(body.get("kind"))
    if kind == _DEFINITION:
        return
    seen: set[tuple[int, str]] = set()
    found = [*_in_containers(body)]
    for spec in (*_DEFAULT_PATHS, *specs):
        if spec.kind in ("", kind):
            found += _at_path(body, spec.segments)
    for field in found:
        mark = (id(field.holder), field.key)
        if mark not in seen and field.text:
            seen.add(mark)
            yield field


def _in_containers(value: Value) -> Iterator[ImageField]:
    pending: list[Value] = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, list):
            pending += reversed(one)
        elif isinstance(one, dict):
            for key in _CONTAINERS:
                for container in sequence(one.get(key)):
                    if isinstance(container, dict):
                        name = text_of(container.get("name"))
                        yield ImageField(container, "image", f"{key.removesuffix('s')} {name}".strip())
            pending += reversed(one.values())


def _at_path(value: Value, segments: tuple[str, ...]) -> Iterator[ImageField]:
    if isinstance(value, list):
        for item in value:
            yield from _at_path(item, segments)
    elif isinstance(value, dict) and len(segments) == 1:
        yield ImageField(value, segments[0], f"field {segments[0]}")
    elif isinstance(value, dict) and segments:
        yield from _at_path(value.get(segments[0]), segments[1:])


def _split(text: str) -> tuple[str, str, str]:
    """Split `registry:5000/a:1@sha256:0` into name, tag and digest, in the same way as kustomize."""
    head, at, digest = text.partition("@")
    slash = head.find("/")
    colon = head.find(":", max(slash, 0))
    if colon < 0:
        return head, "", digest if at else ""
    return head[:colon], head[colon + 1 :], digest
