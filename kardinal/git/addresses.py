"""The addresses that a Git host and its API may have, and the hosts whose messages may be quoted.

The author of a Pipeline names a host, and the agent can reach addresses that the author cannot: the metadata service of
a cloud, and the services of its own pod. These addresses are refused. Private addresses are allowed, because most
companies have their Git host there. But another service may answer at such an address, and the author must not read its
messages; so they are quoted only if `--allow-git-hosts` lists the host. A name does not determine an address, and two
DNS queries may have two answers. So the connection is made to the addresses that were checked, in every IPv6 notation
that leads to an IPv4 address.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from kardinal.git.errors import AddressRefused, RepositoryUnreachable
from kardinal.git.secret_hosts import host_allowed
from kardinal.tree.repository_url import DEFAULT_PORTS, RepositoryURL

__all__ = ["LOOPBACK", "NEAR", "CheckedHost", "HostAddresses", "kind_of", "literal"]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

NEAR = "an address of its link, or of a metadata service"
LOOPBACK = "a loopback address"
_MULTICAST = "a multicast address"
_PRIVATE = "an address that is not public"

_METADATA = frozenset(
    map(ipaddress.ip_address, ("100.100.100.200", "168.63.129.16", "169.254.169.254", "192.0.0.192", "fd00:ec2::254"))
)
"""Metadata and host services of clouds, not all of which have a link-local address."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_LOCAL_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_UNSPECIFIED = "an address that leads to this machine, or nowhere"


@dataclass(frozen=True, slots=True)
class CheckedHost:
    """The checked addresses of a host. `quotable`: the messages of the host may be quoted."""

    host: str
    port: int
    addresses: tuple[str, ...]
    quotable: bool


@dataclass(frozen=True, slots=True)
class HostAddresses:
    """The rules of an agent. `loopback`: this machine may be a host. `hosts`: the patterns of `--allow-git-hosts`."""

    loopback: bool = False
    hosts: Sequence[str] = ()

    def check(self, addresses: Iterable[str], host: str) -> bool:
        """Return whether messages of `host` (`host[:port]`) may be quoted; raises `AddressRefused`."""
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

    def find(self, url: str) -> CheckedHost:
        """Return the addresses of a repository's host, from DNS. Raises `AddressRefused`, `RepositoryUnreachable`."""
        parts = urlsplit(url)
        name = parts.hostname or ""
        port = parts.port or DEFAULT_PORTS[parts.scheme]
        try:
            answers = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        except OSError:
            raise RepositoryUnreachable(
                f"{url} can not be reached", remedy="Check the host name and the network", transient=True
            ) from None
        addresses = tuple(dict.fromkeys(str(answer[4][0]) for answer in answers))
        return CheckedHost(name, port, addresses, self.check(addresses, RepositoryURL(text=url).host))


def literal(name: str) -> str | None:
    """Return the normalized address if a host name is an IP address; None for a DNS name."""
    try:
        return str(ipaddress.ip_address(name.strip("[]")))
    except ValueError:
        return None


def kind_of(address: Address) -> str | None:
    """Return the reason why an address is not public, for example `a loopback address`; None for a public one."""
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
    """Return the IPv4 address that an IPv6 address is translated to, if there is one."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
    if inner is None and (address in _NAT64 or (address in _COMPATIBLE and int(address) > 1)):
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address in _LOCAL_NAT64:
        # The position of the IPv4 address in such a prefix depends on the network, so it is unknown.
        return ipaddress.IPv6Address("::")
    return inner if inner is not None else address
