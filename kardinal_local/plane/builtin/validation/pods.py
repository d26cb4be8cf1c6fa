"""Validate pod specs: containers, their ports, environment, probes and resources, and the volumes they mount."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kardinal_local.plane.builtin.quantities import parse
from kardinal_local.plane.builtin.validation.addresses import address_fault
from kardinal_local.plane.builtin.validation.faults import (
    Check,
    duplicate,
    forbidden,
    invalid,
    label_faults,
    named,
    not_found,
    one_of,
    required,
)
from kardinal_local.plane.builtin.validation.ports import in_port_range, port_name_problems
from kardinal_local.plane.builtin.validation.probes import probe_faults
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.naming import (
    label_problems,
    label_value_problems,
    qualified_name_problems,
    subdomain_problems,
)
from kardinal_local.plane.schemas.causes import not_supported

__all__ = ["CHECKS", "PROTOCOLS", "pod_spec"]

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_SOURCES: Final = (
    "emptyDir",
    "hostPath",
    "secret",
    "nfs",
    "persistentVolumeClaim",
    "downwardAPI",
    "configMap",
    "projected",
    "csi",
    "ephemeral",
    "image",
)
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_PODS_CHANGE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
)


def pod_spec(spec: JsonObject, path: str) -> Iterator[Cause]:
    """Everything that is wrong with a pod spec."""
    volumes: set[str] = set()
    for index, volume in enumerate(spec.get("volumes", ())):
        at, name = f"{path}.volumes[{index}].name", volume["name"]
        for extra in [source for source in _SOURCES if source in volume][1:]:
            yield forbidden(f"{path}.volumes[{index}].{extra}", "may not specify more than 1 volume type")
        yield from named(at, name, label_problems)
        if name in volumes:
            yield duplicate(at, name)
        volumes.add(name)
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    names: set[str] = set()
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            at = f"{path}.{field}[{index}]"
            yield from _container(container, at, volumes=volumes)
            if container["name"] in names and container["name"]:
                yield duplicate(f"{at}.name", container["name"])
            names.add(container["name"])
    yield from one_of(f"{path}.restartPolicy", spec["restartPolicy"], _RESTART_POLICIES)
    yield from one_of(f"{path}.dnsPolicy", spec["dnsPolicy"], _DNS_POLICIES)
    yield from label_faults(f"{path}.nodeSelector", spec.get("nodeSelector", {}))
    if "serviceAccountName" in spec:
        yield from named(f"{path}.serviceAccountName", spec["serviceAccountName"], subdomain_problems)
    for index, toleration in enumerate(spec.get("tolerations", ())):
        yield from _toleration(toleration, f"{path}.tolerations[{index}]")
    for index, alias in enumerate(spec.get("hostAliases", ())):
        yield from _host_alias(alias, f"{path}.hostAliases[{index}]")


def _container(container: JsonObject, path: str, *, volumes: set[str]) -> Iterator[Cause]:
    yield from named(f"{path}.name", container["name"], label_problems)
    image = container.get("image", "")
    if not image:
        yield required(f"{path}.image")
    elif image != image.strip():
        yield invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    for name in _PROBES:
        if name in container:
            yield from probe_faults(container[name], f"{path}.{name}")
    yield from one_of(f"{path}.imagePullPolicy", container["imagePullPolicy"], _PULL_POLICIES)
    yield from _ports(container.get("ports", ()), f"{path}.ports")
    for index, variable in enumerate(container.get("env", ())):
        yield from _variable(variable, f"{path}.env[{index}]")
    for index, mount in enumerate(container.get("volumeMounts", ())):
        at = f"{path}.volumeMounts[{index}]"
        if not mount["name"]:
            yield required(f"{at}.name")
        elif mount["name"] not in volumes:
            yield not_found(f"{at}.name", mount["name"])
        if not mount["mountPath"]:
            yield required(f"{at}.mountPath")
    yield from _resources(container["resources"], f"{path}.resources")


def _ports(ports: list[JsonObject], path: str) -> Iterator[Cause]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        at = f"{path}[{index}]"
        if "name" in port:
            yield from (invalid(f"{at}.name", port["name"], problem) for problem in port_name_problems(port["name"]))
            if port["name"] in names:
                yield duplicate(f"{at}.name", port["name"])
            names.add(port["name"])
        if not port["containerPort"]:
            yield required(f"{at}.containerPort")
        else:
            yield from in_port_range(f"{at}.containerPort", port["containerPort"])
        yield from one_of(f"{at}.protocol", port["protocol"], PROTOCOLS)


def _variable(variable: JsonObject, path: str) -> Iterator[Cause]:
    if not variable["name"]:
        yield required(f"{path}.name")
    if "valueFrom" in variable and variable.get("value"):
        yield invalid(f"{path}.valueFrom", "", "may not be specified when `value` is not empty")


def _toleration(toleration: JsonObject, path: str) -> Iterator[Cause]:
    key, operator, value = (toleration.get(name, "") for name in ("key", "operator", "value"))
    effect = toleration.get("effect", "")
    if key:
        yield from (invalid(f"{path}.key", key, problem) for problem in qualified_name_problems(key))
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{path}.operator", operator, detail)
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        yield invalid(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator == "Exists" and value:
        yield invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    elif operator in ("", "Equal") and (problems := label_value_problems(value)):
        yield invalid(f"{path}.operator", value, ";".join(problems))
    if operator in ("Gt", "Lt"):
        # Switched off, and told all the same.
        yield not_supported(f"{path}.operator", operator, ["Equal", "Exists", "Lt", "Gt"])
    else:
        yield from one_of(f"{path}.operator", operator or None, ("Equal", "Exists"))
    yield from one_of(f"{path}.effect", effect or None, ("NoSchedule", "PreferNoSchedule", "NoExecute"))


def _host_alias(alias: JsonObject, path: str) -> Iterator[Cause]:
    yield from address_fault(f"{path}.ip", alias["ip"])
    for index, name in enumerate(alias.get("hostnames", ())):
        at = f"{path}.hostnames[{index}]"
        yield from (invalid(at, name, problem) for problem in subdomain_problems(name))


def _resources(resources: JsonObject, path: str) -> Iterator[Cause]:
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            if parse(amount) < 0:
                yield invalid(f"{path}.{field}[{name}]", amount, "must be greater than or equal to 0")
    for name, amount in requests.items():
        if name in limits and parse(amount) > parse(limits[name]):
            yield invalid(f"{path}.requests", amount, f"must be less than or equal to {name} limit of {limits[name]}")


def _pod(pod: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    yield from pod_spec(pod["spec"], "spec")
    if old is not None and _fixed(pod["spec"]) != _fixed(old["spec"]):
        yield forbidden("spec", _PODS_CHANGE)


def _fixed(spec: JsonObject) -> JsonObject:
    """What of a pod cannot change."""
    kept = {key: value for key, value in spec.items() if key not in ("activeDeadlineSeconds", "tolerations")}
    for field in ("containers", "initContainers"):
        kept[field] = [{key: one[key] for key in one if key != "image"} for one in spec.get(field) or ()]
    return kept


CHECKS: Final[dict[tuple[str, str], Check]] = {("", "Pod"): _pod}
