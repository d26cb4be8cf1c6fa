"""Replace the version after a repository, in text files of any format.

This is for files that have no parser here: templates, scripts, Terraform. The text to find is literal, either the
repository or a text that the author chose, and it must be followed by a version: `:tag`, `@digest` or both. A longer
name that starts or ends like the repository is another image, and a port is not a tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kardinal.edits.helm.values_images import reference_in
from kardinal.edits.images import PromotedImage
from kardinal.objects.errors import KardinalError
from kardinal.objects.image_reference import ImageReference
from kardinal.objects.suggestions import nearest

__all__ = ["LiteralError", "literal_doubt", "mentions", "references_in", "replace_versions"]

_TAG = rb"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = rb"sha(?:256|384|512):[0-9a-f]{6,128}"
_VERSION = rb"(?::" + _TAG + rb"(?:@" + _DIGEST + rb")?|@" + _DIGEST + rb")(?![A-Za-z0-9_./:@-])"
_BEFORE = rb"(?:(?<=://)|(?<![A-Za-z0-9_./-]))"
"""The context before a name: no other character of a name, or a scheme such as `oci://`."""
_REFERENCE = re.compile(
    rb"(?:(?<=://)|(?<![A-Za-z0-9_./:-]))[A-Za-z0-9][A-Za-z0-9.:_-]{0,254}(?:/[a-z0-9._-]{1,255}){1,8}" + _VERSION
)
_DOCKER_HUB = ("docker.io/", "index.docker.io/", "registry-1.docker.io/")
_SHOWN = 3


class LiteralError(KardinalError):
    """A literal cannot stand for several images."""


def replace_versions(content: bytes, images: Sequence[PromotedImage], *, literal: str | None = None) -> bytes:
    """Return `content` with the new version after every image in it. Raises `LiteralError`."""
    for image, names in _sought(images, literal):
        version = str(ImageReference("", image.reference.tag, image.reference.digest)).encode()
        content = _pattern(names).sub(rb"\g<name>" + version, content)
    return content


def literal_doubt(content: bytes, images: Sequence[PromotedImage], *, literal: str | None = None) -> str | None:
    """Return a message with the nearest images if `content` contains none of `images` with a version, else None.

    Raises `LiteralError`.
    """
    sought = _sought(images, literal)
    if not sought or any(_pattern(names).search(content) for _, names in sought):
        return None
    return _missing(content, images, literal)


def _sought(images: Sequence[PromotedImage], literal: str | None) -> list[tuple[PromotedImage, Sequence[str]]]:
    if literal is not None and len(images) > 1:
        raise LiteralError(f"a literal stands for one image, and {len(images)} are promoted; choose one by images")
    return [(image, [literal] if literal is not None else _spellings(image.reference)) for image in images]


def mentions(content: bytes, reference: ImageReference) -> bool:
    """Return whether a text contains the repository of an image, followed by a version."""
    return _pattern(_spellings(reference)).search(content) is not None


def references_in(content: bytes) -> Iterator[ImageReference]:
    """Yield the texts that look like an image reference with a version. Names without a slash are ignored."""
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
    """Return the spellings of a repository in files, longer ones first, since a shorter one may be their end.

    A name without a slash is searched only if the Bundle writes it so, because `redis:6379` is a host and a port.
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
