"""Which addresses a Git host and its API may have, and which of them its words are passed on from.

Who writes a Pipeline names a host, and the agent stands where its author may not: beside the metadata service of a
cloud and the services of its own pod. Those addresses are no Git host. Private ones are, in most companies; but what
answers there may be something else, whose words the author is not to read, so they are quoted where `--allow-git-hosts`
lists the host. A name says nothing about an address, and two questions to DNS may have two answers: the connection is
made to the addresses that were looked at, in every spelling that leads to IPv4.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from kardinal.api.repository_url import DEFAULT_PORTS, RepositoryURL
from kardinal.git.errors import AddressRefused, RepositoryUnreachable
from kardinal.git.secret_hosts import host_allowed

__all__ = ["LOOPBACK", "NEAR", "Found", "HostAddresses", "kind_of", "literal"]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

NEAR = "an address of its link, or of a metadata service"
LOOPBACK = "a loopback address"
_MULTICAST = "a multicast address"
_PRIVATE = "an address that is not public"

_METADATA = frozenset(
    map(ipaddress.ip_address, ("100.100.100.200", "168.63.129.16", "169.254.169.254", "192.0.0.192", "fd00:ec2::254"))
)
"""Metadata and host services of clouds, not all of which have an address of a link."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_LOCAL_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_UNSPECIFIED = "an address that leads to this machine, or nowhere"


@dataclass(frozen=True, slots=True)
class Found:
    """The addresses that a host has now, each of which was looked at, and whether its words may be passed on."""

    host: str
    port: int
    addresses: tuple[str, ...]
    quotable: bool


@dataclass(frozen=True, slots=True)
class HostAddresses:
    """The rules of an agent. `loopback`: this machine is one of the hosts. `hosts`: those of `--allow-git-hosts`."""

    loopback: bool = False
    hosts: Sequence[str] = ()

    def check(self, addresses: Iterable[str], host: str) -> bool:
        """Return whether words of a host (`host[:port]`) may be passed on; raises `AddressRefused`."""
        listed = bool(self.hosts) and host_allowed(host, self.hosts)
        quotable = True
        for text in addresses:
            address = _plain(ipaddress.ip_address(text.partition("%")[0]))
            kind = _UNSPECIFIED if address.is_unspecified else kind_of(address)
            if kind in (NEAR, _MULTICAST) or (kind in (LOOPBACK, _UNSPECIFIED) and not self.loopback):
                remedy = (
                    "Name the host of the repository" if kind != LOOPBACK else "Start with --allow-local-repositories"
                )
                raise AddressRefused(f"{host} has {kind}, where no Git host is contacted", remedy=remedy)
            quotable = quotable and (kind != _PRIVATE or listed)
        return quotable

    def find(self, url: str) -> Found:
        """Return the addresses of a repository's host; asks DNS. Raises `AddressRefused`, `RepositoryUnreachable`."""
        parts = urlsplit(url)
        name, port = parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]
        try:
            answers = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        except OSError:
            raise RepositoryUnreachable(
                f"{url} can not be reached", remedy="Check the host name and the network", transient=True
            ) from None
        addresses = tuple(dict.fromkeys(str(answer[4][0]) for answer in answers))
        return Found(name, port, addresses, self.check(addresses, RepositoryURL(text=url).host))


def literal(name: str) -> str | None:
    """Return the address that a host name is; None for a name."""
    try:
        return str(ipaddress.ip_address(name.strip("[]")))
    except ValueError:
        return None


def kind_of(address: Address) -> str | None:
    """Return what keeps an address from being public; None for a public one."""
    address = _plain(address)
    if address in _METADATA or address.is_link_local:
        return NEAR
    if address.is_loopback:
        return LOOPBACK
    if address.is_multicast:
        return _MULTICAST
    if address.is_unspecified or address.is_reserved or not address.is_global:
        return _PRIVATE
    return None


def _plain(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address leads to, where it leads to one."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
    if inner is None and (address in _NAT64 or (address in _COMPATIBLE and int(address) > 1)):
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address in _LOCAL_NAT64:
        # Where a network puts the address into its own prefix is not known.
        return ipaddress.IPv6Address("::")
    return inner if inner is not None else address
