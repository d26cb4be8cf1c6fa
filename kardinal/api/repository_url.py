"""Repository URLs: the accepted forms, checked before anything is opened.

Three spellings are accepted: `https://host/path`, `file:///path` and a plain absolute path. The last two name a
place on this machine's file system, which inside a cluster is the pod's; they need an explicit permission.
Credentials come from a Secret and never from a URL, because URLs end in status, events and logs.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from kardinal.objects.errors import KardinalError

__all__ = ["InvalidRepositoryURL", "LocalRepositoryRefused", "RepositoryURL"]

_MAX_LENGTH = 2048


class InvalidRepositoryURL(KardinalError):
    """A URL that is malformed, carries credentials, or has a scheme that kardinal does not support."""

    field = "git.url"


class LocalRepositoryRefused(KardinalError):
    """A path or `file://` URL where local repositories are not allowed."""

    field = "git.url"


@dataclass(frozen=True, slots=True)
class RepositoryURL:
    """One repository under one spelling. `path` is set when it is on this machine."""

    text: str
    path: str | None = None

    @classmethod
    def parse(cls, url: str, *, allow_local: bool) -> RepositoryURL:
        """Return the normalised form of `url`."""
        if not url or len(url) > _MAX_LENGTH or not url.isprintable() or " " in url:
            raise _invalid(url, "it is empty, too long or contains spaces or control characters")
        parsed = cls._local(url) if url.startswith(("/", "file:")) else cls._remote(url)
        if parsed.path is not None and not allow_local:
            raise LocalRepositoryRefused(
                f"{parsed.text} is a local repository, and those are refused here",
                remedy="Use an https:// URL, run under `kardinal local up`, or start with --allow-local-repositories",
            )
        return parsed

    @classmethod
    def _local(cls, url: str) -> RepositoryURL:
        path = url
        if url.startswith("file:"):
            parts = urlsplit(url)
            if not url.startswith("file://") or parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
                raise _invalid(url, "a file URL is file:// followed by an absolute path")
            path = unquote(parts.path)
        segments = [segment for segment in path.split("/") if segment not in ("", ".")]
        if ".." in segments or not segments or not path.isprintable():
            raise _invalid(url, "`..` and the root directory are not allowed")
        path = "/" + "/".join(segments)
        return cls(text=f"file://{path}", path=path)

    @classmethod
    def _remote(cls, url: str) -> RepositoryURL:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise _invalid(url, "it can not be read as a URL") from None
        if "@" in parts.netloc:
            # The text of the URL is left out: it holds the secret.
            raise InvalidRepositoryURL(
                "a repository URL must not carry a user name or password",
                remedy="Put them into a Secret and name it in git.secretRef",
            )
        if parts.scheme != "https" or not host:
            raise _invalid(url, "it is neither https://host/path, file:///path nor an absolute path")
        if parts.query or parts.fragment:
            raise _invalid(url, "it has a query or a fragment")
        path = parts.path.rstrip("/")
        if not path or ".." in unquote(path).split("/"):
            raise _invalid(url, "it names no repository, or has `..` in its path")
        name = f"[{host}]" if ":" in host else host
        return cls(text=f"https://{name}{f':{port}' if port not in (None, 443) else ''}{path}")


def _invalid(url: str, reason: str) -> InvalidRepositoryURL:
    shown = url.partition("://")[2].rpartition("@")[2] or url
    return InvalidRepositoryURL(
        f"{shown[:120]!r} is not a repository URL: {reason}", remedy="Correct git.url in the Pipeline"
    )
