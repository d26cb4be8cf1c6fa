"""Validate addresses: above all those of Services, and the IP families that go with them.

Most of these are found when the families are derived, where they refuse a write by themselves; who makes a service
through /status comes by there without. A change may touch all but the first address and the first family.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final

from kardinal_local.plane.builtin.validation.faults import duplicate, invalid, one_of, required
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause

__all__ = [
    "HEADLESS",
    "address_fault",
    "address_faults",
    "changed_addresses",
    "external_faults",
    "is_headless",
    "range_faults",
]

HEADLESS: Final = "None"
_FAMILIES: Final = ("IPv4", "IPv6")
_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_NO_RANGE: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_LINK_LOCAL_MULTICAST: Final = {4: ipaddress.ip_network("224.0.0.0/24"), 6: ipaddress.ip_network("ff02::/16")}


def address_fault(path: str, text: str) -> Iterator[Cause]:
    if _parsed(text) is None:
        yield invalid(path, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")


def is_headless(spec: JsonObject) -> bool:
    return bool(spec.get("clusterIPs") == [HEADLESS])


def address_faults(spec: JsonObject) -> list[Cause]:
    """What is wrong with addresses, families and policy, each for itself and beside the others."""
    faults = [*_address_pair(spec), *_families(spec)]
    broken = list(_addresses(spec))
    addresses = spec.get("clusterIPs", [])
    faults += broken
    if len(addresses) > 2:
        faults.append(invalid("spec.clusterIPs", addresses, "may only hold up to 2 values"))
    if broken:
        return faults
    if len(addresses) > 1 and {":" in address for address in addresses} != {True, False}:
        detail = "may specify no more than one IP for each IP family"
        faults.append(invalid("spec.clusterIPs", addresses, detail))
    return [*faults, *_mismatches(spec)]


def _address_pair(spec: JsonObject) -> Iterator[Cause]:
    address, addresses = spec.get("clusterIP"), spec.get("clusterIPs", [])
    if address and not addresses:
        yield required("spec.clusterIPs")
    elif address and addresses[0] != address:
        yield invalid("spec.clusterIPs", addresses, "first value must match `clusterIP`")
    elif addresses and not address:
        yield invalid("spec.clusterIPs", addresses, "must be empty when `clusterIP` is not specified")


def _families(spec: JsonObject) -> Iterator[Cause]:
    families = spec.get("ipFamilies", [])
    for index, family in enumerate(families):
        yield from one_of(f"spec.ipFamilies[{index}]", family, _FAMILIES)
        if family in families[:index]:
            yield duplicate(f"spec.ipFamilies[{index}]", family)
    yield from one_of("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), _POLICIES)


def _addresses(spec: JsonObject) -> Iterator[Cause]:
    addresses = spec.get("clusterIPs", [])
    for index, address in enumerate(addresses):
        if index == 0 and address == HEADLESS:
            if len(addresses) > 1:
                yield invalid("spec.clusterIPs", addresses, "'None' must be the first and only value")
        else:
            yield from address_fault(f"spec.clusterIPs[{index}]", address)


def _mismatches(spec: JsonObject) -> Iterator[Cause]:
    if is_headless(spec):
        return
    for index, (address, family) in enumerate(
        zip(spec.get("clusterIPs", ()), spec.get("ipFamilies", ()), strict=False)
    ):
        if family in _FAMILIES and (":" in address) != (family == "IPv6"):
            detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            yield invalid(f"spec.clusterIPs[{index}]", address, detail)


def changed_addresses(spec: JsonObject, before: JsonObject) -> Iterator[Cause]:
    """What of a change touches the first address or family, which stay as long as there is one."""
    if "ExternalName" in (spec["type"], before["type"]):
        return
    headless, was_headless = is_headless(spec), is_headless(before)
    if not (headless and was_headless):
        yield from _changed(spec, before, "clusterIPs", "clusterIP")
    if not headless and not was_headless:
        yield from _changed(spec, before, "ipFamilies", "ipFamily")


def _changed(spec: JsonObject, before: JsonObject, field: str, one: str) -> Iterator[Cause]:
    now, known, at = spec.get(field, []), before.get(field, []), f"spec.{field}"
    if len(now) == len(known):
        for index, (value, was) in enumerate(zip(now, known, strict=True)):
            if value != was:
                yield invalid(f"{at}[{index if field == 'clusterIPs' else 0}]", now, "may not change once set")
        return
    if len(now) < len(known) and not spec.get("clusterIPs"):
        yield invalid(f"{at}[0]", now, f"primary {one} can not be unset")
    if now and known and now[0] != known[0]:
        yield invalid(f"{at}[0]", spec.get("clusterIPs", []), "may not change once set")
    if len(now) == 1 < len(known) and spec.get("ipFamilyPolicy") != "SingleStack":
        detail = f"must be set to 'SingleStack' when releasing the secondary {one}"
        yield invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), detail)


def external_faults(path: str, addresses: list[str]) -> Iterator[Cause]:
    """Validate the addresses at which others route to a Service."""
    for index, text in enumerate(addresses):
        at, address = f"{path}[{index}]", _parsed(text)
        if address is None:
            yield from address_fault(at, text)
            continue
        if address.is_unspecified:
            yield invalid(at, text, f"may not be unspecified ({text})")
        if address.is_loopback:
            yield invalid(at, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
        if address.is_link_local:
            yield invalid(at, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
        if address in _LINK_LOCAL_MULTICAST[address.version]:
            yield invalid(at, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")


def range_faults(path: str, ranges: list[str]) -> Iterator[Cause]:
    for index, text in enumerate(ranges):
        try:
            ipaddress.ip_network(text.strip(), strict=False)
        except ValueError:
            yield invalid(f"{path}[{index}]", text.strip(), _NO_RANGE)


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
