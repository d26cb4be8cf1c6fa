"""Addresses to listen on, as given on command lines, and addresses of clients."""

from __future__ import annotations

import ipaddress

__all__ = ["network_of", "split_address"]

IPV6_NETWORK = 64
"""The prefix length of an IPv6 network that counts as one address, because one machine has the whole network."""


def split_address(address: str) -> tuple[str | None, int]:
    """Split `host:port`, `[v6]:port` or `:port`, which means every interface. Raises ValueError."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{address!r} is no address: write host:port, or :port for every interface")
    return host.strip("[]") or None, int(port)


def network_of(address: str | None) -> str:
    """Return the address by which a client is counted: for IPv6, its network."""
    try:
        parsed = ipaddress.ip_address((address or "").partition("%")[0])
    except ValueError:
        return address or ""
    if parsed.version == 4:
        return str(parsed)
    return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, IPV6_NETWORK), strict=False))
