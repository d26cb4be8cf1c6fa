"""The functions of rules for IP addresses, networks and URLs.

Stricter than `format`: no zones, no IPv4 inside IPv6, no leading zeros.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

from kardinal.cel import Fault, Function
from kardinal_local.plane.schemas.formats import is_uri

__all__ = ["ADDRESS_FUNCTIONS"]

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Ip:
    address: _Address


@dataclass(frozen=True, slots=True)
class Cidr:
    """A network with the address it was written with."""

    address: _Address
    network: ipaddress.IPv4Network | ipaddress.IPv6Network

    @property
    def text(self) -> str:
        return f"{self.address}/{self.network.prefixlen}"


@dataclass(frozen=True, slots=True)
class Url:
    parts: SplitResult


def _ip(text: str) -> Ip:
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        words = f'IP Address "{text}" parse error during conversion from string: {error}'
        raise Fault("conversion", words) from None
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        raise Fault("conversion", f'IP address "{text}" with zone value is not allowed')
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise Fault("conversion", f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return Ip(address)


def _cidr(text: str) -> Cidr:
    host, _, length = text.partition("/")
    try:
        if not re.fullmatch(r"0|[1-9][0-9]*", length):
            raise ValueError("bad prefix length")
        return Cidr(_ip(host).address, ipaddress.ip_network(text, strict=False))
    except ValueError as error:
        words = f"network address parse error during conversion from string: {error}"
        raise Fault("conversion", words) from None


def _url(text: str) -> Url:
    try:
        parts = urlsplit(text)
        valid = is_uri(text)
    except ValueError:
        valid = False
    if not valid:
        words = f'URL parse error during conversion from string: parse "{text}": invalid URI for request'
        raise Fault("conversion", words)
    return Url(parts)


def _is(read: Any) -> Any:
    def test(text: str) -> bool:
        try:
            read(text)
        except Fault:
            return False
        return True

    return test


def _contains_ip(cidr: Cidr, ip: Ip) -> bool:
    return ip.address in cidr.network


def _contains_cidr(cidr: Cidr, other: Cidr) -> bool:
    if cidr.network.version != other.network.version:
        return False
    return other.network.subnet_of(cidr.network)  # type: ignore[arg-type]


def _masked(cidr: Cidr) -> Cidr:
    return Cidr(cidr.network.network_address, cidr.network)


def _host(url: Url) -> str:
    return url.parts.netloc.rpartition("@")[2]


def _hostname(url: Url) -> str:
    host = _host(url)
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _port(url: Url) -> str:
    host = _host(url).rpartition("]")[2]
    return host.partition(":")[2]


def _query(url: Url) -> dict[str, list[str]]:
    return parse_qs(url.parts.query, keep_blank_values=True)


def _path(url: Url) -> str:
    return quote(unquote(url.parts.path), safe="/$&+,:;=@~!'()*")


ADDRESS_FUNCTIONS: Final[dict[str, Function]] = {
    "ip": Function({(str,): _ip, (Cidr,): lambda cidr: Ip(cidr.address)}),
    "isIP": Function({(str,): _is(_ip)}),
    "ip.isCanonical": Function({(str,): lambda text: str(_ip(text).address) == text}),
    "family": Function({(Ip,): lambda ip: ip.address.version}),
    "isUnspecified": Function({(Ip,): lambda ip: ip.address.is_unspecified}),
    "isLoopback": Function({(Ip,): lambda ip: ip.address.is_loopback}),
    "isLinkLocalMulticast": Function(
        {(Ip,): lambda ip: ip.address.is_multicast and str(ip.address).startswith(("224.0.0.", "ff02:"))}
    ),
    "isLinkLocalUnicast": Function({(Ip,): lambda ip: ip.address.is_link_local}),
    "isGlobalUnicast": Function(
        {
            (Ip,): lambda ip: (
                not (
                    ip.address.is_unspecified
                    or ip.address.is_loopback
                    or ip.address.is_multicast
                    or ip.address.is_link_local
                    or str(ip.address) == "255.255.255.255"
                )
            )
        }
    ),
    "cidr": Function({(str,): _cidr}),
    "isCIDR": Function({(str,): _is(_cidr)}),
    "containsIP": Function({(Cidr, Ip): _contains_ip, (Cidr, str): lambda cidr, text: _contains_ip(cidr, _ip(text))}),
    "containsCIDR": Function(
        {(Cidr, Cidr): _contains_cidr, (Cidr, str): lambda cidr, text: _contains_cidr(cidr, _cidr(text))}
    ),
    "masked": Function({(Cidr,): _masked}),
    "prefixLength": Function({(Cidr,): lambda cidr: cidr.network.prefixlen}),
    "string": Function({(Ip,): lambda ip: str(ip.address), (Cidr,): lambda cidr: cidr.text}),
    "url": Function({(str,): _url}),
    "isURL": Function({(str,): _is(_url)}),
    "getScheme": Function({(Url,): lambda url: url.parts.scheme}),
    "getHost": Function({(Url,): _host}),
    "getHostname": Function({(Url,): _hostname}),
    "getPort": Function({(Url,): _port}),
    "getEscapedPath": Function({(Url,): _path}),
    "getQuery": Function({(Url,): _query}),
}
