"""Validate Services: what each type allows and requires, their ports, and what an update may not change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kardinal_local.plane.builtin.validation.addresses import (
    address_faults,
    changed_addresses,
    external_faults,
    is_headless,
    range_faults,
)
from kardinal_local.plane.builtin.validation.faults import (
    IMMUTABLE,
    Check,
    duplicate,
    forbidden,
    in_go,
    invalid,
    label_faults,
    named,
    one_of,
    required,
)
from kardinal_local.plane.builtin.validation.pods import PROTOCOLS
from kardinal_local.plane.builtin.validation.ports import in_port_range, port_or_name
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.naming import label_problems, qualified_name_problems, subdomain_problems

__all__ = ["CHECKS", "LOCALITY", "is_external", "needs_health_check", "notes"]

LOCALITY: Final = ("Cluster", "Local")
_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_EXTERNAL_NAME_LACKS: Final = ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
_LONGEST_AFFINITY: Final = 86400
_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
_BALANCED_ONLY: Final = "may only be used when `type` is 'LoadBalancer'"


def is_external(spec: JsonObject) -> bool:
    """Return whether it can be reached from outside the cluster."""
    return spec["type"] in ("LoadBalancer", "NodePort") or bool(spec["type"] == "ClusterIP" and spec.get("externalIPs"))


def needs_health_check(spec: JsonObject) -> bool:
    return spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _service(service: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    spec = service["spec"]
    if old is not None:
        yield from _changes(spec, old["spec"])
    if not spec.get("ports") and not is_headless(spec) and spec["type"] != "ExternalName":
        yield required("spec.ports")
    yield from _of_its_type(spec)
    yield from _ports(spec.get("ports", []))
    yield from label_faults("spec.selector", spec.get("selector", {}))
    yield from _affinity(spec)
    if spec["type"] != "ExternalName":
        yield from address_faults(spec)
    yield from external_faults("spec.externalIPs", spec.get("externalIPs", []))
    yield from one_of("spec.type", spec["type"], _TYPES)
    yield from _clashes(spec)
    yield from _balancing(spec)
    yield from _traffic(spec)
    ingress = service["status"].get("loadBalancer", {}).get("ingress")
    if ingress and spec["type"] != "LoadBalancer":
        yield forbidden("status.loadBalancer.ingress", "may only be used when `spec.type` is 'LoadBalancer'")


def _changes(spec: JsonObject, before: JsonObject) -> Iterator[Cause]:
    yield from changed_addresses(spec, before)
    balancer, known = spec.get("loadBalancerClass"), before.get("loadBalancerClass")
    if spec["type"] == before["type"] == "LoadBalancer" and balancer != known:
        yield invalid("spec.loadBalancerClass", balancer, "may not change once set")
    moved = spec.get("healthCheckNodePort") != before.get("healthCheckNodePort")
    if moved and needs_health_check(spec) and needs_health_check(before):
        yield forbidden("spec.healthCheckNodePort", IMMUTABLE)


def _of_its_type(spec: JsonObject) -> Iterator[Cause]:
    kind = spec["type"]
    if kind in ("LoadBalancer", "NodePort") and is_headless(spec):
        yield invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        for field in _EXTERNAL_NAME_LACKS:
            if spec.get(field) is not None:
                yield forbidden(f"spec.{field}", "may not be set for ExternalName services")
        yield from named("spec.externalName", spec.get("externalName", "").removesuffix("."), subdomain_problems)


def _ports(ports: list[JsonObject]) -> Iterator[Cause]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        at, name = f"spec.ports[{index}]", port.get("name", "")
        if name:
            yield from (invalid(f"{at}.name", name, problem) for problem in label_problems(name))
            if name in names:
                yield duplicate(f"{at}.name", name)
            names.add(name)
        elif len(ports) > 1:
            yield required(f"{at}.name")
        yield from in_port_range(f"{at}.port", port["port"])
        yield from one_of(f"{at}.protocol", port["protocol"], PROTOCOLS)
        yield from port_or_name(f"{at}.targetPort", port["targetPort"])
        protocol = port.get("appProtocol")
        if protocol is not None:
            yield from (invalid(f"{at}.appProtocol", protocol, one) for one in qualified_name_problems(protocol))


def _affinity(spec: JsonObject) -> Iterator[Cause]:
    affinity, config = spec["sessionAffinity"], spec.get("sessionAffinityConfig")
    yield from one_of("spec.sessionAffinity", affinity, ("ClientIP", "None"))
    if affinity == "ClientIP" and config is not None:
        seconds = config["clientIP"]["timeoutSeconds"]
        if not 0 < seconds <= _LONGEST_AFFINITY:
            detail = f"must be greater than 0 and less than {_LONGEST_AFFINITY}"
            yield invalid("spec.sessionAffinityConfig.clientIP.timeoutSeconds", seconds, detail)
    elif affinity == "None" and config is not None:
        yield forbidden("spec.sessionAffinityConfig", "must not be set when session affinity is None")


def _clashes(spec: JsonObject) -> Iterator[Cause]:
    """Ports at a node, where there are none or one has them already, and ports that are there twice."""
    ports = spec.get("ports", [])
    numbered = [(f"spec.ports[{index}].nodePort", port) for index, port in enumerate(ports) if port.get("nodePort")]
    if spec["type"] == "ClusterIP":
        yield from (forbidden(at, "may not be used when `type` is 'ClusterIP'") for at, _ in numbered)
    seen: set[Any] = set()
    for at, port in numbered:
        if (port["protocol"], port["nodePort"]) in seen:
            yield duplicate(at, port["nodePort"])
        seen.add((port["protocol"], port["nodePort"]))
    seen.clear()
    for index, port in enumerate(ports):
        identity = (port["port"], port["protocol"])
        if identity in seen:
            nameless = {"Name": "", "Protocol": identity[1], "AppProtocol": None, "Port": identity[0]}
            shown = in_go(nameless | {"TargetPort": 0, "NodePort": 0})
            yield Cause("FieldValueDuplicate", f"spec.ports[{index}]", f"Duplicate value: {shown}")
        seen.add(identity)


def _balancing(spec: JsonObject) -> Iterator[Cause]:
    balanced = spec["type"] == "LoadBalancer"
    ranges = spec.get("loadBalancerSourceRanges", [])
    # The real server begins the name of this field with a capital.
    if ranges and not balanced:
        yield forbidden("spec.LoadBalancerSourceRanges", _BALANCED_ONLY)
    yield from range_faults("spec.LoadBalancerSourceRanges", ranges)
    if "allocateLoadBalancerNodePorts" in spec and not balanced:
        yield forbidden("spec.allocateLoadBalancerNodePorts", _BALANCED_ONLY)
    balancer = spec.get("loadBalancerClass")
    if balancer is not None and not balanced:
        yield forbidden("spec.loadBalancerClass", _BALANCED_ONLY)
    elif balancer is not None:
        yield from (invalid("spec.loadBalancerClass", balancer, one) for one in qualified_name_problems(balancer))


def _traffic(spec: JsonObject) -> Iterator[Cause]:
    policy, port = spec.get("externalTrafficPolicy"), spec.get("healthCheckNodePort")
    if is_external(spec):
        yield from one_of("spec.externalTrafficPolicy", policy, LOCALITY)
    elif policy:
        detail = "may only be set for externally-accessible services"
        yield invalid("spec.externalTrafficPolicy", policy, detail)
    if port and not needs_health_check(spec):
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield invalid("spec.healthCheckNodePort", port, detail)
    elif port:
        yield from in_port_range("spec.healthCheckNodePort", port)
    yield from one_of("spec.internalTrafficPolicy", spec.get("internalTrafficPolicy"), LOCALITY)
    yield from one_of("spec.trafficDistribution", spec.get("trafficDistribution"), _DISTRIBUTIONS)


def notes(service: JsonObject) -> Iterator[str]:
    """What the author of a good service should know all the same."""
    spec = service["spec"]
    external, addresses = spec["type"] == "ExternalName", spec.get("externalIPs")
    if "service.kubernetes.io/topology-aware-hints" in service["metadata"].get("annotations", {}):
        yield (
            "annotation service.kubernetes.io/topology-aware-hints is deprecated, "
            "please use service.kubernetes.io/topology-mode instead"
        )
    if spec["type"] == "ClusterIP" and is_headless(spec):
        if spec.get("loadBalancerIP"):
            yield "spec.loadBalancerIP is ignored for headless services"
        if addresses:
            yield "spec.externalIPs is ignored for headless services"
        if spec["sessionAffinity"] != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    elif addresses and external:
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    elif addresses:
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    if not external and spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


CHECKS: Final[dict[tuple[str, str], Check]] = {("", "Service"): _service}
