"""Repository URLs: the accepted forms, validated before anything is opened, and the key to compare repositories by.

Accepted are `https://host/path`, `ssh://user@host/path`, its short form `user@host:path`, `file:///path` and a plain
absolute path. The last two refer to the file system of this machine, which inside a cluster is that of the pod; they
need an explicit permission. So does `http://host/path`, except to this machine, because it sends credentials
unencrypted. Credentials come from a Secret and never from a URL, because URLs appear in status, events and logs. The
user name of ssh is allowed, because it is not a credential.

A path in `user@host:path` is relative to the root, as Git hosts interpret it, and not to the home directory of the
user; otherwise a directory would have two names.

Gates bind to repositories, so two spellings of the same repository must have an equal `repository_key`. A spelling that
servers and resolvers interpret differently, such as `2130706433` as a host or `;x` in a path, is refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_address
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from kardinal.objects.errors import KardinalError

__all__ = [
    "DEFAULT_PORTS",
    "InvalidRepositoryURL",
    "LocalRepositoryRefused",
    "RepositoryURL",
    "folded",
    "host_over_ssh",
    "is_local_spelling",
    "repository_key",
    "same_host",
    "same_path",
    "ssh_spelling",
    "without_git_suffix",
]

DEFAULT_PORTS = {"https": 443, "http": 80, "ssh": 22}
"""Scheme -> the default port, which is omitted when repositories are compared."""

_OVER_SSH = {"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com"}
"""Hosts that accept ssh on port 443, for networks that block other ports -> the host whose repositories they serve.

https://docs.github.com/en/authentication/troubleshooting-ssh/using-ssh-over-the-https-port

https://about.gitlab.com/blog/2016/02/18/gitlab-dot-com-now-supports-an-alternate-git-plus-ssh-port/
"""

_MAX_LENGTH = 2048
_MAX_HOST = 253
_REMOTE = re.compile(
    r"(?P<scheme>https?|ssh)://(?:(?P<user>[^/\\?#]*)@)?"
    r"(?P<host>[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{0,5}))?(?P<path>/.*)?",
    # without ASCII, the long s (U+017F) would match `s` here, but is another letter elsewhere
    re.IGNORECASE | re.ASCII,
)
_SHORT_SSH = re.compile(
    r"(?P<user>[^/\\\\:@?#\[\]]+)@(?P<host>[a-z0-9.*_-]+|\[[0-9a-f:.]+\]):(?P<path>(?!//).+)", re.IGNORECASE | re.ASCII
)
"""The short form `user@host:path`."""
_SSH_USER = re.compile(r"[a-z_][a-z0-9_.-]{0,63}", re.IGNORECASE | re.ASCII)
_HTTPS_PORT = 443
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_AMBIGUOUS = frozenset("%;\\?#")
"""Characters of a decoded path: a nested escape, a parameter that some servers remove, or a separator."""

_VIEWS = (["proc"], ["dev", "fd"])
"""Directories in which others appear under additional names: `/proc/self/root` is the root directory again."""


class InvalidRepositoryURL(KardinalError):
    """A URL that is malformed, carries credentials, or has a scheme that kardinal does not support."""

    field = "git.url"


class LocalRepositoryRefused(KardinalError):
    """A path or `file://` URL where local repositories are not allowed."""

    field = "git.url"


@dataclass(frozen=True, slots=True)
class RepositoryURL:
    """One repository in one spelling. `path` is set if it is on this machine."""

    text: str
    path: str | None = None

    @property
    def scheme(self) -> str:
        """Return `https`, `http`, `ssh` or `file`."""
        return self.text.partition("://")[0]

    @property
    def host(self) -> str:
        """Return `host[:port]` in lower case; empty for a local repository.

        The port is omitted if it is 443, the port of https: a configured host without a port never means ssh or http.
        """
        if self.path is not None:
            return ""
        remote = _Remote.parse(self.text).counted
        port = remote.port or DEFAULT_PORTS[remote.scheme]
        return remote.name if port == _HTTPS_PORT else f"{remote.name}:{port}"

    @classmethod
    def parse(cls, url: str, *, allow_local: bool, insecure: Sequence[str] = ()) -> RepositoryURL:
        """Return the normalized form of `url`.

        `insecure` are the hosts (`host[:port]`) that may be contacted over http.
        """
        _check_characters(url)
        parsed = cls._local(url) if is_local_spelling(url) else cls._remote(url, insecure)
        if parsed.path is not None and not allow_local:
            raise LocalRepositoryRefused(
                f"{parsed.text} is a local repository, and those are refused here",
                remedy="Use an https:// URL, run under `kardinal local up`, or start with --allow-local-repositories",
            )
        repository_key(url)  # Refuse a repository that has no key, because gates could not bind to it.
        return parsed

    @classmethod
    def _local(cls, url: str) -> RepositoryURL:
        path = "/" + "/".join(_local_segments(url))
        return cls(text=f"file://{path}", path=path)

    @classmethod
    def _remote(cls, url: str, insecure: Sequence[str]) -> RepositoryURL:
        authority = ssh_spelling(url).partition("://")[2].partition("/")[0]
        user, found, _ = authority.rpartition("@")
        remote = _Remote.parse(url) if not found or _SSH_USER.fullmatch(user) else None
        if remote is None or (found and remote.scheme != "ssh"):
            # The message leaves out the URL, because it contains the secret.
            raise InvalidRepositoryURL(
                "a repository URL must not carry a user name or password, but for the user of ssh",
                remedy="Put them into a Secret and name it in secretRef",
            )
        if remote.scheme == "ssh" and not user:
            raise _invalid(url, "ssh needs a user: write ssh://git@host/path")
        if remote.scheme == "http":
            _check_insecure(url, remote, insecure)
        start = f"{user}@" if user else ""
        return cls(text=f"{remote.scheme}://{start}{remote.authority}{remote.path.rstrip('/')}")


def repository_key(url: str) -> str:
    """Return the key to compare the repository at `url` by: `host[:port]/path`, or `file:///absolute/path`.

    For example, `https://GitHub.com/Acme/app.git` has the key `github.com/acme/app`. Scheme, user, default port, case,
    escapes, `.git` and trailing slashes make no difference. Where the scheme matters, as for a redirect from https to
    http, compare it separately. The same repository has different ports over https, http and ssh;
    `kardinal/promotion/policy/binding.py` compares across them. Raises `InvalidRepositoryURL`.
    """
    _check_characters(url)
    if is_local_spelling(url):
        start = "file://"
        segments = _local_segments(url)
    else:
        remote = _Remote.parse(url).counted
        start = remote.place
        segments = list(remote.segments)
    key = "/".join(without_git_suffix([folded(segment) for segment in segments]))
    if not key:
        raise _invalid(url, "it names no repository")
    return f"{start}/{key}"


def same_host(one: str, other: str) -> bool:
    """Return whether two URLs have the same host and port; False for local repositories.

    Raises `InvalidRepositoryURL`.
    """
    if is_local_spelling(one) or is_local_spelling(other):
        return False
    return RepositoryURL(text=one).host == RepositoryURL(text=other).host


def same_path(one: str, other: str) -> bool:
    """Return whether two URLs have the same path at their hosts, whatever the hosts. Raises `InvalidRepositoryURL`.

    `https://git.example.com/acme/app.git` and `git@10.0.0.7:acme/app` do. A host that is served below a path has that
    prefix only in its https URLs, so one path may have more in front: `https://example.com/git/acme/app`.
    """
    if is_local_spelling(one) or is_local_spelling(other):
        return False
    shorter, longer = sorted((repository_key(url).split("/")[1:] for url in (one, other)), key=len)
    return longer[-len(shorter) :] == shorter


def host_over_ssh(name: str, port: int) -> str | None:
    """Return the host whose repositories another name serves over ssh on port 443; None if `name` is no such name.

    `ssh.github.com` at port 443 stands for `github.com`: it has the same repositories, API, gates and Secrets.
    """
    return _OVER_SSH.get(name) if port == _HTTPS_PORT else None


def ssh_spelling(url: str) -> str:
    """Return `user@host:path` as `ssh://user@host/path`, and any other text unchanged."""
    match = _SHORT_SSH.fullmatch(url)
    return f"ssh://{match['user']}@{match['host']}/{match['path'].removeprefix('/')}" if match else url


def is_local_spelling(url: str) -> bool:
    """Return whether a URL refers to the file system of this machine."""
    return url.startswith(("/", "file:"))


def folded(text: str) -> str:
    """Return `text` for a comparison without regard to case and to the Unicode composition of letters."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def without_git_suffix(segments: Iterable[str]) -> list[str]:
    """Return the segments without a trailing `.git`, both as a suffix and as a directory of its own."""
    left = list(segments)
    while left and left[-1].endswith(".git"):
        left[-1] = left[-1].removesuffix(".git")
        if not left[-1]:
            left.pop()
    return left


@dataclass(frozen=True, slots=True)
class _Remote:
    """The parts of a URL with a host. `host` is normalized, `path` still has its escapes."""

    scheme: str
    host: str
    port: int | None
    path: str
    segments: tuple[str, ...]

    @classmethod
    def parse(cls, url: str) -> _Remote:
        short = _SHORT_SSH.fullmatch(url)
        match = _REMOTE.fullmatch(ssh_spelling(url))
        if match is None:
            raise _invalid(
                url, "it is neither https://host/path, ssh://user@host/path, file:///path nor an absolute path"
            )
        scheme = match["scheme"].lower()
        port = int(match["port"] or DEFAULT_PORTS[match["scheme"].lower()])
        if not 0 < port < 65536:
            raise _invalid(url, "there is no such port")
        path = match["path"] or ""
        segments = _decoded_segments(url, path)
        if scheme == "ssh" and segments[0].startswith("~"):
            raise _invalid(url, "a path in a home directory has other names: write it from the root")
        if short and segments[0].isdecimal():
            raise _invalid(url, f"{segments[0]} may be a port or a directory: write ssh://user@host:port/path")
        return cls(
            scheme, _host(url, match["host"].lower()), None if port == DEFAULT_PORTS[scheme] else port, path, segments
        )

    @property
    def counted(self) -> _Remote:
        """Return the remote with the host that it counts as in comparisons; it is not the host to connect to."""
        host = host_over_ssh(self.host, self.port) if self.scheme == "ssh" and self.port else None
        return replace(self, host=host, port=None) if host else self

    @property
    def name(self) -> str:
        """The host in the notation of a URL."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def authority(self) -> str:
        return self.name if self.port is None else f"{self.name}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Return whether the host is this machine, by its name or address alone."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def place(self) -> str:
        """The authority for comparisons, in which an IPv4 address that is written as IPv6 is an IPv4 address."""
        mapped = IPv6Address(self.host).ipv4_mapped if ":" in self.host else None
        port = "" if self.port is None else f":{self.port}"
        return f"{mapped}{port}" if mapped else self.authority


def _check_characters(url: str) -> None:
    if not url or len(url) > _MAX_LENGTH or not url.isprintable() or " " in url:
        raise _invalid(url, "it is empty, too long or contains spaces or control characters")


def _check_insecure(url: str, remote: _Remote, insecure: Sequence[str]) -> None:
    port = remote.port or DEFAULT_PORTS["http"]
    if port == _HTTPS_PORT:
        raise _invalid(url, f"port {_HTTPS_PORT} is that of https")
    allowed = {entry.lower() for entry in insecure}
    if not remote.is_loopback and not {remote.authority, f"{remote.name}:{port}"} & allowed:
        raise InvalidRepositoryURL(
            f"http://{remote.authority} would be sent the credentials in the clear",
            remedy=f"Use https://, or have the operator start with --allow-insecure-git {remote.authority}",
        )


def _local_segments(url: str) -> list[str]:
    path = url
    if url.startswith("file:"):
        parts = urlsplit(url)
        if not url.startswith("file://") or parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
            raise _invalid(url, "a file URL is file:// followed by an absolute path")
        path = unquote(parts.path)
    segments = [segment for segment in path.split("/") if segment not in ("", ".")]
    if ".." in segments or not segments or not path.isprintable():
        raise _invalid(url, "`..` and the root directory are not allowed")
    if any(segments[: len(view)] == view for view in _VIEWS):
        raise _invalid(url, "it lies where other directories appear under further names")
    return segments


def _host(url: str, host: str) -> str:
    """Return the normalized form of a host name or address; an IPv6 address has no brackets."""
    if host.startswith("["):
        try:
            return IPv6Address(host[1:-1]).compressed
        except AddressValueError:
            raise _invalid(url, "its host is no IPv6 address") from None
    host = host.removesuffix(".")
    labels = host.split(".")
    if not all(labels) or len(host) > _MAX_HOST or any(label.startswith("-") for label in labels):
        raise _invalid(url, "its host is no host name")
    if _NUMERIC_LABEL.fullmatch(labels[-1]):
        # Resolvers also accept 127.1, 0x7f000001 and 2130706433 as addresses.
        try:
            return str(IPv4Address(host))
        except AddressValueError:
            raise _invalid(url, "its host is a number: write an IPv4 address as four decimal numbers") from None
    return host


def _decoded_segments(url: str, path: str) -> tuple[str, ...]:
    try:
        decoded = unquote_to_bytes(path).decode()
    except UnicodeDecodeError:
        decoded = ""
    if not decoded.isprintable() or _BROKEN_ESCAPE.search(path) or _AMBIGUOUS & set(decoded):
        raise _invalid(url, "its path has a query, a fragment, or characters that servers read in different ways")
    segments = tuple(segment for segment in decoded.split("/") if segment not in ("", "."))
    if not segments or ".." in segments:
        raise _invalid(url, "it names no repository, or has `..` in its path")
    return segments


def _invalid(url: str, reason: str) -> InvalidRepositoryURL:
    # Remove possible credentials, also if the scheme was forgotten.
    shown = (url.partition("://")[2] or url).rpartition("@")[2]
    return InvalidRepositoryURL(
        f"{shown[:120]!r} is not a repository URL: {reason}", remedy="Correct it in the Pipeline"
    )
