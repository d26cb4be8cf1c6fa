"""Complete a Service as the real server does: its addresses, its IP families, its ports.

A Service says many things twice (`clusterIP` and `clusterIPs`), some of them implied by others, and old clients know
only half of them. So the server reads what was meant: it keeps what it drew before, makes both agree, derives the
families, and drops what a changed type no longer needs. All this happens before anything is judged, and what cannot be
read refuses the write by itself. Services have one family here, IPv4, as on a cluster with the usual configuration.

Addresses and ports are drawn and not allocated, for nothing listens at them.
"""

from __future__ import annotations

import random
from typing import Any, Final

from kardinal_local.plane.builtin.validation.addresses import HEADLESS, address_faults
from kardinal_local.plane.builtin.validation.faults import invalid
from kardinal_local.plane.builtin.validation.services import LOCALITY, is_external, needs_health_check
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause, Incomplete

__all__ = ["complete"]

_FAMILY: Final = "IPv4"
_FAMILIES: Final = {"IPv4": "IPv6", "IPv6": "IPv4"}
_ADDRESS_FIELDS: Final = ("clusterIP", "clusterIPs")
_ADDRESSED: Final = ("ClusterIP", "LoadBalancer", "NodePort")
_draw = random.SystemRandom()


def complete(service: JsonObject, old: JsonObject | None) -> None:
    """Set what is the server's to set; raises Incomplete when it contradicts what was asked for."""
    spec, before = service["spec"], None if old is None else old["spec"]
    if before is not None:
        _remember(spec, before)
    _pair_addresses(spec, before)
    if spec["type"] != "ExternalName":
        if not _stays_preferred(spec, before):
            _set_families(spec, before)
        if before is None or before["type"] == "ExternalName":
            _draw_addresses(spec)
    elif spec.get("internalTrafficPolicy") in LOCALITY:
        # A default that came in where none belongs; the real server stores it and does not show it.
        del spec["internalTrafficPolicy"]
    _draw_ports(spec, before)
    if before is not None:
        _drop_needless(spec, before)
        if spec["type"] != "LoadBalancer" and before["type"] == "LoadBalancer":
            service["status"] = {**service["status"], "loadBalancer": {}}


def _needs_node_ports(spec: JsonObject) -> bool:
    return spec["type"] == "NodePort" or (
        spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False
    )


def _remember(spec: JsonObject, before: JsonObject) -> None:
    """What was drawn before and is not said again stays."""
    if "ExternalName" not in (spec["type"], before["type"]):
        for field in _ADDRESS_FIELDS:
            if not spec.get(field) and before.get(field):
                spec[field] = before[field]
    if _needs_node_ports(spec) and _needs_node_ports(before):
        kept = _node_ports(spec) & _node_ports(before)
        known = {port.get("name", ""): port.get("nodePort") for port in before.get("ports", ())}
        for port in spec.get("ports", ()):
            drawn = known.get(port.get("name", ""))
            if not port.get("nodePort") and drawn and drawn not in kept:
                port["nodePort"] = drawn
    if needs_health_check(spec) and needs_health_check(before) and "healthCheckNodePort" in before:
        spec.setdefault("healthCheckNodePort", before["healthCheckNodePort"])


def _node_ports(spec: JsonObject) -> set[int]:
    return {port["nodePort"] for port in spec.get("ports", ()) if port.get("nodePort")}


def _pair_addresses(spec: JsonObject, before: JsonObject | None) -> None:
    """Set `clusterIP` or `clusterIPs`, whichever a client has not changed or does not know, from the other."""
    address, addresses = spec.get("clusterIP"), spec.get("clusterIPs", [])
    if before is None:
        if address and not addresses:
            spec["clusterIPs"] = [address]
        return
    changed, same = address != before.get("clusterIP"), addresses == before.get("clusterIPs", [])
    if not changed and not addresses and before.get("clusterIPs"):
        spec["clusterIPs"] = before["clusterIPs"]
    elif changed and same and not address:
        spec.pop("clusterIPs", None)
    elif changed and same:
        spec["clusterIPs"] = [address]


def _stays_preferred(spec: JsonObject, before: JsonObject | None) -> bool:
    """Whether a Service with two families where there are two is left as it is: clusters change, and it does not."""
    return (
        before is not None
        and spec["type"] == before["type"]
        and spec["type"] in _ADDRESSED
        and spec.get("ipFamilyPolicy") == "PreferDualStack"
        and before.get("ipFamilyPolicy") in (None, "PreferDualStack")
        and all(spec.get(field, []) == before.get(field, []) for field in ("clusterIPs", "ipFamilies"))
    )


def _set_families(spec: JsonObject, before: JsonObject | None) -> None:
    selectorless = spec.get("clusterIP") == HEADLESS and not spec.get("selector")
    if spec.get("ipFamilyPolicy") is None:
        default = "RequireDualStack" if selectorless else "SingleStack"
        spec["ipFamilyPolicy"] = (before or {}).get("ipFamilyPolicy") or default
    _refuse(address_faults(spec))
    _refuse(_fit_policy(spec, before) + _infer_families(spec))
    families = spec.setdefault("ipFamilies", [_FAMILY])
    if selectorless:
        if len(families) < 2 and spec["ipFamilyPolicy"] != "SingleStack":
            spec["ipFamilies"] = [families[0], _FAMILIES[families[0]]]
        return
    faults = []
    if spec["ipFamilyPolicy"] == "RequireDualStack":
        faults.append(_policy_fault(spec, "this cluster is not configured for dual-stack services"))
    faults += [
        invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
        for index, family in enumerate(families)
        if family != _FAMILY
    ]
    _refuse(faults)


def _refuse(faults: list[Cause]) -> None:
    if faults:
        raise Incomplete(faults)


def _policy_fault(spec: JsonObject, detail: str) -> Cause:
    return invalid("spec.ipFamilyPolicy", spec["ipFamilyPolicy"], detail)


def _fit_policy(spec: JsonObject, before: JsonObject | None) -> list[Cause]:
    """Give up a second address or family where one is asked for; where two are, none may go unsaid."""
    faults = []
    for field, one, several in (
        ("clusterIPs", "cluster IP", "cluster IPs"),
        ("ipFamilies", "IP family", "IP families"),
    ):
        values: list[Any] = spec.get(field, [])
        known: list[Any] = (before or {}).get(field, [])
        if spec["ipFamilyPolicy"] != "SingleStack":
            if 0 < len(values) < len(known):
                faults.append(_policy_fault(spec, f"must be 'SingleStack' to release the secondary {one}"))
            continue
        if before is not None and values == known and len(values) > 1:
            spec[field] = values = values[:1]
        if len(values) == 2:
            detail = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {several} are specified"
            faults.append(_policy_fault(spec, detail))
    return faults


def _infer_families(spec: JsonObject) -> list[Cause]:
    faults = []
    for index, address in enumerate(spec.get("clusterIPs", ())):
        if address == HEADLESS:
            break
        families = spec.get("ipFamilies", [])
        if index >= len(families) and ":" in address:
            at = f"spec.clusterIPs[{index}]"
            faults.append(invalid(at, spec["clusterIPs"], "IPv6 is not configured on this cluster"))
        elif index >= len(families):
            spec["ipFamilies"] = [*families, _FAMILY]
    return faults


def _draw_addresses(spec: JsonObject) -> None:
    if not spec.get("clusterIPs"):
        address = f"10.{_draw.randint(96, 111)}.{_draw.randint(0, 255)}.{_draw.randint(1, 254)}"
        spec["clusterIP"], spec["clusterIPs"] = address, [address]


def _draw_ports(spec: JsonObject, before: JsonObject | None) -> None:
    if _needs_node_ports(spec):
        ports = spec.get("ports", [])
        # In a new service the protocols of one port share a number.
        shared = {port["port"]: port["nodePort"] for port in ports if port.get("nodePort") and before is None}
        for port in ports:
            if not port.get("nodePort"):
                port["nodePort"] = shared.get(port["port"]) or _node_port()
                if before is None:
                    shared[port["port"]] = port["nodePort"]
    if needs_health_check(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = _node_port()


def _node_port() -> int:
    return _draw.randint(30000, 32767)


def _drop_needless(spec: JsonObject, before: JsonObject) -> None:
    """Drop what a change leaves without a use, unless its author changed that, too: then it is refused."""
    if spec["type"] == "ExternalName" != before["type"]:
        _drop_same(spec, before, *_ADDRESS_FIELDS, together=True)
        _drop_same(spec, before, "ipFamilies")
        _drop_same(spec, before, "ipFamilyPolicy")
    node_ported = ("LoadBalancer", "NodePort")
    if before["type"] in node_ported and spec["type"] not in node_ported and _node_ports(spec) <= _node_ports(before):
        for port in spec.get("ports", ()):
            port.pop("nodePort", None)
    if needs_health_check(before) and not needs_health_check(spec):
        _drop_same(spec, before, "healthCheckNodePort")
    if before["type"] == "LoadBalancer" != spec["type"]:
        _drop_same(spec, before, "allocateLoadBalancerNodePorts")
        _drop_same(spec, before, "loadBalancerClass")
    if is_external(before) and not is_external(spec):
        _drop_same(spec, before, "externalTrafficPolicy")


def _drop_same(spec: JsonObject, before: JsonObject, *fields: str, together: bool = False) -> None:
    same = [field for field in fields if spec.get(field) == before.get(field)]
    if not together or len(same) == len(fields):
        for field in same:
            spec.pop(field, None)
