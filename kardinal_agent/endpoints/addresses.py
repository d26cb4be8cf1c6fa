"""Which hosts and addresses the endpoint of a custom step may have.

The author of a Pipeline chooses the URL, and the agent can reach addresses that the author cannot: the metadata service
of a cloud, API servers and other tenants. Without a flag of the operator, an endpoint must therefore be a public host
with https. Two DNS queries for a name may have two answers, so the check is made on the addresses that the connection
is then made to (`CheckedResolver`), in all notations of an IPv4 address.

A host in `--allow-step-hosts` may have any address, with one exception: link-local addresses and those of metadata
services are permitted only to a host that is listed without `*`, because a pattern may match one by accident.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult

from kardinal.git.addresses import NEAR, kind_of, literal
from kardinal.git.secret_hosts import host_allowed, host_of
from kardinal_agent.endpoints.errors import HostRefused

__all__ = ["CheckedResolver", "StepHosts"]

_PORT = re.compile(r":[0-9*]+$")


class StepHosts:
    """The hosts in the list of the flag `flag`; a pattern without a port means port 443."""

    def __init__(self, patterns: Sequence[str], *, flag: str = "--allow-step-hosts") -> None:
        self._flag = flag
        self._patterns = tuple(patterns)
        self._exact = tuple(pattern for pattern in patterns if "*" not in _PORT.sub("", pattern))

    def check_url(self, url: str) -> None:
        """Raise `HostRefused` for a URL that is forbidden by its scheme or host name."""
        parts = urlsplit(url)
        host = host_of(url)
        if parts.scheme != "https" and not _listed(host, self._patterns):
            raise HostRefused(f"{host} is not asked without TLS: use https, or ask the operator for {self._flag}")
        if address := literal(parts.hostname or ""):
            self.check_address(address, host)

    def check_address(self, address: str, host: str) -> None:
        """Raise `HostRefused` for an address that a host (`host[:port]`) may not have."""
        kind = kind_of(ipaddress.ip_address(address))
        if kind is None:
            return
        near = kind == NEAR
        if not _listed(host, self._exact if near else self._patterns):
            wanted = "with its name, without *" if near else "with it"
            raise HostRefused(f"{host} has {kind}: ask the operator for {self._flag} {wanted}")


class CheckedResolver(AbstractResolver):
    """Resolves one host name; if one of its addresses is forbidden, all of them are refused."""

    def __init__(self, hosts: StepHosts, host: str, resolver: AbstractResolver) -> None:
        self._hosts = hosts
        self._host = host
        self._resolver = resolver

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)  # type: ignore[arg-type]
        for each in found:
            self._hosts.check_address(each["host"], self._host)
        return found

    async def close(self) -> None:
        await self._resolver.close()


def _listed(host: str, patterns: Sequence[str]) -> bool:
    return bool(patterns) and host_allowed(host, patterns)
