"""Validate the probes of a container: how often each runs, and its one handler."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from kardinal_local.plane.builtin.validation.faults import forbidden, invalid, non_negative, one_of, required
from kardinal_local.plane.builtin.validation.ports import in_port_range, port_or_name
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause

__all__ = ["probe_faults"]

_COUNTS: Final = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_HEADER: Final = re.compile(r"[-A-Za-z0-9]+")
_HEADER_PROBLEM: Final = (
    "a valid HTTP header must consist of alphanumeric characters or '-' "
    f"(e.g. 'X-Header-Name', regex used for validation is '{_HEADER.pattern}')"
)


def probe_faults(probe: JsonObject, path: str) -> Iterator[Cause]:
    handlers = [name for name in _HANDLERS if name in probe]
    if not handlers:
        yield required(path, "must specify a handler type")
    for name in handlers[:1]:
        yield from _HANDLERS[name](probe[name], f"{path}.{name}")
    for extra in handlers[1:]:
        yield forbidden(f"{path}.{extra}", "may not specify more than 1 handler type")
    for field in _COUNTS:
        yield from non_negative(f"{path}.{field}", probe.get(field))


def _exec(handler: JsonObject, path: str) -> Iterator[Cause]:
    if not handler.get("command"):
        yield required(f"{path}.command")


def _http_get(handler: JsonObject, path: str) -> Iterator[Cause]:
    yield from port_or_name(f"{path}.port", handler["port"])
    yield from one_of(f"{path}.scheme", handler["scheme"], ("HTTP", "HTTPS"))
    for header in handler.get("httpHeaders", ()):
        if not _HEADER.fullmatch(header["name"]):
            # The list and not its item is what the real server names.
            yield invalid(f"{path}.httpHeaders", header["name"], _HEADER_PROBLEM)


def _tcp_socket(handler: JsonObject, path: str) -> Iterator[Cause]:
    yield from port_or_name(f"{path}.port", handler["port"])


def _grpc(handler: JsonObject, path: str) -> Iterator[Cause]:
    yield from in_port_range(f"{path}.port", handler["port"])


_HANDLERS: Final[dict[str, Callable[[JsonObject, str], Iterator[Cause]]]] = {
    "exec": _exec,
    "httpGet": _http_get,
    "tcpSocket": _tcp_socket,
    "grpc": _grpc,
}
"""In the order in which the real server looks: the first that is there is the one that counts."""
