"""Image references: `repository[:tag][@digest]`, read once and compared by what they mean.

`nginx`, `library/nginx` and `docker.io/library/nginx` name one repository, and a registry's port looks like a tag to a
careless reader. Everything that asks "is this the image we promote?" (the kustomize edit, health, the pull request's
table) therefore compares `canonical`, never text. What goes into a manifest stays `repository`, as its author wrote it.

The trap: two references with the same tag may be two images. Where a promotion carries a digest, it alone decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from kardinal.objects import JsonObject
from kardinal.objects.errors import KardinalError
from kardinal.objects.text import cut, printable

if TYPE_CHECKING:
    from kardinal.api.bundle import Artifacts, Image

__all__ = [
    "ImageReference",
    "ImageReferenceError",
    "bundle_title",
    "bundle_version",
    "bundle_versions",
    "image_problems",
    "promoted_image",
    "promoted_images",
    "stored_title",
    "stored_version",
    "stored_versions",
]

_DEFAULT_REGISTRY = "docker.io"
_OFFICIAL = "library"
_OTHER_NAMES_OF_THE_DEFAULT = frozenset(["index.docker.io", "registry-1.docker.io"])

_PATH_PART = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
_HOST = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9A-Fa-f:]+\])"
    r"(?::[0-9]{1,5})?"
)
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha(?:256|384|512):[0-9a-f]{6,128}")

_SHORT_DIGEST = 12
_SHORT_COMMIT = 7

_SHOWN_VERSIONS = 8
_VERSIONS_LIMIT = 600
"""Artifacts of a Bundle that are told in one line, and its characters."""


class ImageReferenceError(KardinalError, ValueError):
    """The text is not an image reference; says which part is wrong and how it is written."""

    @property
    def name(self) -> str:
        return "InvalidImage"


@dataclass(frozen=True, slots=True)
class ImageReference:
    """A repository and which image of it."""

    repository: str
    tag: str | None = None
    digest: str | None = None

    @classmethod
    def parse(cls, text: str) -> ImageReference:
        """Read `repository[:tag][@digest]`; raise `ImageReferenceError` for anything else."""
        return _parsed(text)

    @property
    def canonical(self) -> str:
        """The repository in full, the same for every way of writing it: `nginx` → `docker.io/library/nginx`."""
        first, slash, rest = self.repository.partition("/")
        if not slash or not _is_host(first):
            registry, path = _DEFAULT_REGISTRY, self.repository
        else:
            registry, path = first.lower(), rest
        if registry in _OTHER_NAMES_OF_THE_DEFAULT:
            registry = _DEFAULT_REGISTRY
        if registry == _DEFAULT_REGISTRY and "/" not in path:
            path = f"{_OFFICIAL}/{path}"
        return f"{registry}/{path}"

    @property
    def version(self) -> str:
        """The short version for people: the tag, else the beginning of the digest."""
        if self.tag:
            return self.tag
        return self.digest.partition(":")[2][:_SHORT_DIGEST] if self.digest else "latest"

    def same_repository(self, other: ImageReference) -> bool:
        return self.canonical == other.canonical

    def runs(self, other: ImageReference) -> bool:
        """Return whether image `other` is proven to be this one, by digest if there is one, else by tag."""
        if not self.same_repository(other):
            return False
        if self.digest:
            return other.digest == self.digest
        return (other.tag or "latest") == (self.tag or "latest")

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.repository}{tag}{digest}"


@lru_cache(1024)
def _parsed(text: str) -> ImageReference:
    """Read a reference; the same few are asked about all the time."""
    rest, at, digest = text.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        raise ImageReferenceError(
            f"image reference {_shown(text)}: {_shown(digest)} is not a digest; write sha256:<hexadecimal digits>"
        )
    head, slash, last = rest.rpartition("/")
    name, colon, tag = last.partition(":")
    if colon and not _TAG.fullmatch(tag):
        raise ImageReferenceError(
            f"image reference {_shown(text)}: {_shown(tag)} is not a tag; "
            "a tag has up to 128 letters, digits, '_', '.' and '-', and starts with none of the last two"
        )
    repository = f"{head}{slash}{name}"
    _check_repository(repository, text)
    return ImageReference(repository, tag if colon else None, digest if at else None)


def promoted_image(image: Image) -> ImageReference:
    """Return the reference a Bundle promotes. Raises `ImageReferenceError`."""
    return _promoted(image.reference, image.digest)


def _promoted(text: str, digest: str | None) -> ImageReference:
    """Read a reference; `digest` wins over the one in it, and a tag or a digest must be there."""
    reference = ImageReference.parse(text)
    if digest:
        if not _DIGEST.fullmatch(digest):
            raise ImageReferenceError(f"digest {_shown(digest)}: write sha256:<hexadecimal digits>")
        reference = replace(reference, digest=digest)
    if not reference.tag and not reference.digest:
        raise ImageReferenceError(
            f"image reference {_shown(text)} names no version: add a tag or a digest, such as {text}:1.2.3"
        )
    return reference


def promoted_images(artifacts: Artifacts) -> tuple[ImageReference, ...]:
    """Every image of a Bundle; errors carry the field of the one that is wrong."""
    found: list[ImageReference] = []
    for index, image in enumerate(artifacts.images):
        try:
            found.append(promoted_image(image))
        except ImageReferenceError as error:
            raise ImageReferenceError(f"spec.artifacts.images[{index}]: {error}") from error
    return tuple(found)


def image_problems(artifacts: Artifacts) -> Iterator[tuple[str, str]]:
    """Yield (field, message) for each image that cannot be promoted; the field is relative to the spec of a Bundle."""
    for index, image in enumerate(artifacts.images):
        try:
            promoted_image(image)
        except ImageReferenceError as error:
            yield f"artifacts.images[{index}]", str(error)


def bundle_version(artifacts: Artifacts) -> str:
    """Return the version of a Bundle for people, by the rules of `stored_version`."""
    return stored_version(artifacts.to_json())


def stored_version(artifacts: JsonObject) -> str:
    """Return the tag of the first image, else its short digest; else the version of the first chart, else a commit.

    `artifacts` is as an API server has it. For an image that translation would refuse, return its text: a list of
    Bundles must be able to show that one too.
    """
    if images := artifacts.get("images"):
        try:
            return _promoted(images[0]["reference"], images[0].get("digest")).version
        except ImageReferenceError:
            return str(images[0]["reference"])
    if charts := artifacts.get("charts"):
        return str(charts[0]["version"])
    commit: JsonObject = artifacts.get("gitCommit") or {}
    return str(commit.get("sha", ""))[:_SHORT_COMMIT]


def bundle_title(artifacts: Artifacts) -> str:
    """Return the version of a Bundle and how many more artifacts it has: `1.2.0 (+2)`; see `stored_title`."""
    return stored_title(artifacts.to_json())


def stored_title(artifacts: JsonObject) -> str:
    """Return the version of stored artifacts for people, with the number of those beside the first."""
    more = len(artifacts.get("images") or ()) + len(artifacts.get("charts") or ()) - 1
    more += 1 if artifacts.get("gitCommit") else 0
    version = stored_version(artifacts)
    return f"{version} (+{more})" if version and more > 0 else version


def stored_versions(artifacts: JsonObject) -> str:
    """Return the versions of all stored artifacts for people: `1.2.0`, or of several `app:1.2.0, worker:2.1`."""
    labelled = [*map(_labelled, artifacts.get("images") or ())]
    labelled += [f"{chart['name']}:{chart['version']}" for chart in artifacts.get("charts") or ()]
    if commit := artifacts.get("gitCommit"):
        labelled.append(f"config:{str(commit.get('sha', ''))[:_SHORT_COMMIT]}")
    if len(labelled) < 2:
        return stored_version(artifacts)
    shown = labelled[:_SHOWN_VERSIONS]
    more = [f"+{len(labelled) - len(shown)}"] if len(labelled) > len(shown) else []
    return cut(printable(", ".join([*shown, *more])), _VERSIONS_LIMIT)


def bundle_versions(artifacts: Artifacts) -> str:
    """Return the versions of all artifacts of a Bundle for people, by the rules of `stored_versions`."""
    return stored_versions(artifacts.to_json())


def _labelled(image: JsonObject) -> str:
    """Return an image as its name, or the last part of its repository, and its version."""
    try:
        reference = _promoted(image["reference"], image.get("digest"))
    except ImageReferenceError:
        return str(image["reference"])
    return f"{image.get('name') or reference.repository.rpartition('/')[2]}:{reference.version}"


def _check_repository(repository: str, text: str) -> None:
    first, slash, rest = repository.partition("/")
    host, path = (first, rest) if slash and _is_host(first) else ("", repository)
    if host and not _HOST.fullmatch(host):
        raise ImageReferenceError(f"image reference {_shown(text)}: {_shown(host)} is not a registry's host name")
    if not path:
        raise ImageReferenceError(
            f"image reference {_shown(text)} names no repository; write it like registry.example.com/team/app:1.2.3"
        )
    wrong = next((part for part in path.split("/") if not _PATH_PART.fullmatch(part)), None)
    if wrong is not None:
        raise ImageReferenceError(
            f"image reference {_shown(text)}: {_shown(wrong)} cannot stand in a repository's name; "
            "use lower-case letters and digits, separated by '.', '_' or '-'"
        )
    if len(path) > 255:
        raise ImageReferenceError(
            f"image reference {_shown(text)}: the repository's name is longer than 255 characters"
        )


def _is_host(part: str) -> bool:
    return "." in part or ":" in part or part == "localhost" or part != part.lower()


def _shown(text: str) -> str:
    return repr(cut(text, 120))
