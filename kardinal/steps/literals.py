"""Replacing the version that follows a repository, wherever a text names it.

For files that no reader of ours understands: templates, scripts, Terraform. What is looked for is literal, the
repository or a text of its author's, and what follows it must be a version: `:tag`, `@digest` or both. A longer name
that begins or ends like the repository is another image, and a port is no tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kardinal.api.image import ImageReference
from kardinal.objects.errors import KardinalError
from kardinal.objects.suggestions import nearest
from kardinal.steps.images import PromotedImage
from kardinal.steps.values_images import reference_in

__all__ = ["LiteralError", "literal_doubt", "mentions", "references_in", "replace_versions"]

_TAG = rb"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = rb"sha(?:256|384|512):[0-9a-f]{6,128}"
_VERSION = rb"(?::" + _TAG + rb"(?:@" + _DIGEST + rb")?|@" + _DIGEST + rb")(?![A-Za-z0-9_./:@-])"
_BEFORE = rb"(?:(?<=://)|(?<![A-Za-z0-9_./-]))"
"""The text before a name that begins here: nothing of a name, or a scheme such as `oci://`."""
_REFERENCE = re.compile(
    rb"(?:(?<=://)|(?<![A-Za-z0-9_./:-]))[A-Za-z0-9][A-Za-z0-9.:_-]{0,254}(?:/[a-z0-9._-]{1,255}){1,8}" + _VERSION
)
_DOCKER_HUB = ("docker.io/", "index.docker.io/", "registry-1.docker.io/")
_SHOWN = 3


class LiteralError(KardinalError):
    """A literal cannot stand for the images."""


def replace_versions(content: bytes, images: Sequence[PromotedImage], *, literal: str | None = None) -> bytes:
    """Return `content` with the version of every image that it names. Raises `LiteralError`."""
    for image, names in _sought(images, literal):
        version = str(ImageReference("", image.reference.tag, image.reference.digest)).encode()
        content = _pattern(names).sub(rb"\g<name>" + version, content)
    return content


def literal_doubt(content: bytes, images: Sequence[PromotedImage], *, literal: str | None = None) -> str | None:
    """Return what a text names instead, where it names none of the images with a version. Raises `LiteralError`."""
    sought = _sought(images, literal)
    if not sought or any(_pattern(names).search(content) for _, names in sought):
        return None
    return _missing(content, images, literal)


def _sought(images: Sequence[PromotedImage], literal: str | None) -> list[tuple[PromotedImage, Sequence[str]]]:
    if literal is not None and len(images) > 1:
        raise LiteralError(f"a literal stands for one image, and {len(images)} are promoted; choose one by images")
    return [(image, [literal] if literal is not None else _spellings(image.reference)) for image in images]


def mentions(content: bytes, reference: ImageReference) -> bool:
    """Return whether a text names the repository of an image, with a version after it."""
    return _pattern(_spellings(reference)).search(content) is not None


def references_in(content: bytes) -> Iterator[ImageReference]:
    """Yield what looks like a reference of an image with a version, except for names without a slash."""
    for match in _REFERENCE.finditer(content):
        found = reference_in(match[0].decode())
        if found is not None:
            yield found


def _pattern(names: Sequence[str]) -> re.Pattern[bytes]:
    return re.compile(rb"(?P<name>" + b"|".join(map(_named, names)) + rb")" + _VERSION)


def _named(name: str) -> bytes:
    boundary = _BEFORE if re.match(r"[A-Za-z0-9_]", name) else b""
    return boundary + re.escape(name.encode())


def _spellings(reference: ImageReference) -> list[str]:
    """Return the ways in which files write a repository, a longer one before one that it ends with.

    A name without a slash is looked for only if the Bundle writes it so: `redis:6379` is a host and its port.
    """
    registry, _, path = reference.canonical.partition("/")
    spelt = {reference.repository, reference.canonical}
    if f"{registry}/" in _DOCKER_HUB:
        spelt |= {f"{hub}{path}" for hub in _DOCKER_HUB} | {path}
        spelt |= {f"{hub}{path.removeprefix('library/')}" for hub in _DOCKER_HUB}
    return sorted(spelt, key=len, reverse=True)


def _missing(content: bytes, images: Sequence[PromotedImage], literal: str | None) -> str:
    wanted = [literal] if literal is not None else [image.reference.repository for image in images]
    names = " and ".join(repr(name) for name in wanted[:_SHOWN])
    there = list(dict.fromkeys(str(found) for found in references_in(content)))
    near = [found for found in (nearest(name, there, cutoff=0.3) for name in wanted) if found]
    shown = list(dict.fromkeys([*near, *there]))[:_SHOWN]
    if shown:
        return f"does not hold {names} with a version; the nearest images in it are {', '.join(shown)}"
    if any(name.encode() in content for name in wanted):
        return f"holds {names} without a version after it: nothing after `:` or `@` can be replaced"
    return f"does not hold {names} with a version, nor any other image"
