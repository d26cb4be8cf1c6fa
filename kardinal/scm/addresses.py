"""Parse a repository's URL to find the API of its host."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from kardinal.scm.errors import UnsupportedProvider
from kardinal.tree.repository_url import DEFAULT_PORTS, host_over_ssh, without_git_suffix

__all__ = ["RepositoryAddress", "quoted"]


@dataclass(frozen=True, slots=True)
class RepositoryAddress:
    """The address of a repository. `origin` is `https://host[:port]`, `segments` the decoded path without `.git`.

    For example, the segments of `https://git.example.com/scm/acme/deploy.git` are `scm`, `acme` and `deploy`.
    """

    origin: str
    segments: tuple[str, ...]

    @classmethod
    def of(cls, url: str) -> RepositoryAddress:
        """Return the address of a remote repository.

        For an ssh URL, the API is assumed at the same host name, over HTTPS and at the default port.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("https", "http", "ssh") or not parts.hostname:
            raise UnsupportedProvider(
                f"{url} is not at a host",
                remedy="Use an https:// URL, or git.provider: local for a repository on this machine",
            )
        if parts.scheme == "ssh":
            host = host_over_ssh(parts.hostname, parts.port or DEFAULT_PORTS["ssh"]) or parts.hostname
            name = f"[{host}]" if ":" in host else host
            origin = f"https://{name}"
        else:
            origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        segments = [unquote(segment) for segment in parts.path.split("/") if segment not in ("", ".")]
        return cls(origin, tuple(without_git_suffix(segments)))

    def owner_and_name(self) -> tuple[str, str, str]:
        """Return the path of the installation, the owner and the name, for example `("/scm", "acme", "deploy")`.

        The first is empty unless the host is installed below a path.
        """
        if len(self.segments) < 2:
            raise UnsupportedProvider(
                f"{self.origin}/{'/'.join(self.segments)} names no repository",
                remedy="Write git.url as https://host/owner/repository",
            )
        *below, owner, name = self.segments
        return "".join(f"/{quoted(segment)}" for segment in below), owner, name


def quoted(segment: str) -> str:
    """Return one path segment with all characters escaped that could end it, such as `/` and `?`."""
    return quote(segment, safe="")
