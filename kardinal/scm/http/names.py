"""Names of hosts, resolved once: the addresses that were looked at are those that are connected to."""

from __future__ import annotations

from collections import OrderedDict

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from kardinal.git.addresses import HostAddresses, literal

__all__ = ["CheckedNames"]

MAX_NAMES = 4096


class CheckedNames(AbstractResolver):
    """Resolves names of hosts and lets no address through that no Git host has; one that is refused refuses all."""

    def __init__(self, rules: HostAddresses) -> None:
        self._rules = rules
        self._resolver = ThreadedResolver()
        self._quotable: OrderedDict[str, bool] = OrderedDict()

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)  # type: ignore[arg-type]
        self._note(host, port, [each["host"] for each in found])
        return found

    async def close(self) -> None:
        """Do nothing: what resolves belongs to all sessions."""

    def check(self, host: str, port: int) -> None:
        """Look at a host that is an address, for which no name is resolved. Raises `AddressRefused`."""
        if address := literal(host):
            self._note(host, port, [address])

    def quotable(self, host: str, port: int) -> bool:
        """Return whether words of a host may be passed on, by the addresses that it had last."""
        return self._quotable.get(_shown(host, port), False)

    def _note(self, host: str, port: int, addresses: list[str]) -> None:
        shown = _shown(host, port)
        self._quotable.pop(shown, None)
        self._quotable[shown] = self._rules.check(addresses, shown)
        while len(self._quotable) > MAX_NAMES:
            self._quotable.popitem(last=False)


def _shown(host: str, port: int) -> str:
    name = f"[{host}]" if ":" in host else host.lower()
    return name if port == 443 else f"{name}:{port}"
