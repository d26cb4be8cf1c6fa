"""Listen addresses as command lines give them."""

from __future__ import annotations

__all__ = ["split_address"]


def split_address(address: str) -> tuple[str | None, int]:
    """`host:port`, `[v6]:port` or `:port`, which means every interface."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{address!r} is no address: write host:port, or :port for every interface")
    return host.strip("[]") or None, int(port)
