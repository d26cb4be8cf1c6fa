"""Addresses to listen on, as command lines give them, and those of clients."""

from __future__ import annotations

import ipaddress

__all__ = ["network_of", "split_address"]

IPV6_NETWORK = 64
"""Bits of an IPv6 address that count as one address: one machine has the rest for itself."""


def split_address(address: str) -> tuple[str | None, int]:
    """`host:port`, `[v6]:port` or `:port`, which means every interface."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{address!r} is no address: write host:port, or :port for every interface")
    return host.strip("[]") or None, int(port)


def network_of(address: str | None) -> str:
    """Return what counts as the address of a client: of IPv6, its network."""
    try:
        parsed = ipaddress.ip_address((address or "").partition("%")[0])
    except ValueError:
        return address or ""
    if parsed.version == 4:
        return str(parsed)
    return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, IPV6_NETWORK), strict=False))
