"""Image references: `repository[:tag][@digest]`, for example `ghcr.io/acme/app:1.2.3`, parsed and compared by meaning.

`nginx`, `library/nginx` and `docker.io/library/nginx` name the same repository, and the port in `registry:5000/app`
looks like a tag to a careless reader. The code that asks "is this the promoted image?" (the kustomize edit, health, the
table of a pull request) therefore compares `canonical`, never text. A manifest gets `repository`, as its author wrote
it.

The trap: two references with the same tag may be two images. When a promotion has a digest, only the digest decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from kardinal.objects.errors import KardinalError
from kardinal.objects.text import cut

__all__ = [
    "ImageReference",
    "ImageReferenceError",
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


class ImageReferenceError(KardinalError, ValueError):
    """The text is not an image reference; the message names the wrong part and the accepted form."""

    @property
    def name(self) -> str:
        return "InvalidImage"


@dataclass(frozen=True, slots=True)
class ImageReference:
    """A repository with the tag, the digest, or both of one of its images."""

    repository: str
    tag: str | None = None
    digest: str | None = None

    @classmethod
    def parse(cls, text: str) -> ImageReference:
        """Read `repository[:tag][@digest]`; raise `ImageReferenceError` for anything else."""
        return _parsed(text)

    @property
    def canonical(self) -> str:
        """The repository in full, the same for every notation: `nginx` → `docker.io/library/nginx`."""
        first, slash, rest = self.repository.partition("/")
        if not slash or not _is_host(first):
            registry = _DEFAULT_REGISTRY
            path = self.repository
        else:
            registry = first.lower()
            path = rest
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

    def with_digest(self, digest: str) -> ImageReference:
        """Return the image of this repository and tag that has `digest`. Raises `ImageReferenceError`."""
        if not _DIGEST.fullmatch(digest):
            raise ImageReferenceError(f"digest {_shown(digest)}: write sha256:<hexadecimal digits>")
        return replace(self, digest=digest)

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
    """Parse a reference; cached, because few references are parsed many times."""
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
