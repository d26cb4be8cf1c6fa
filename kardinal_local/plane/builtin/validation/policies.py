"""Validate roles, leases, budgets, autoscalers, ingresses and classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kardinal_local.plane.builtin.validation.faults import (
    Check,
    forbidden,
    in_go,
    invalid,
    named,
    non_negative,
    one_of,
    required,
)
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.naming import subdomain_problems

__all__ = ["CHECKS"]

_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"


def _role(role: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    yield from _rules(role, namespaced=True)


def _cluster_role(role: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    yield from _rules(role, namespaced=False)


def _rules(role: JsonObject, *, namespaced: bool) -> Iterator[Cause]:
    for index, rule in enumerate(role.get("rules") or ()):
        at, urls = f"rules[{index}]", rule.get("nonResourceURLs")
        if not rule.get("verbs"):
            yield required(f"{at}.verbs", "verbs must contain at least one value")
        if urls:
            if namespaced:
                yield invalid(f"{at}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs")
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                detail = "rules cannot apply to both regular resources and non-resource URLs"
                yield invalid(f"{at}.nonResourceURLs", urls, detail)
            continue
        if not rule.get("apiGroups"):
            yield required(f"{at}.apiGroups", "resource rules must supply at least one api group")
        if not rule.get("resources"):
            yield required(f"{at}.resources", "resource rules must supply at least one resource")


def _binding(binding: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    yield from _bound(binding, old, kinds=("Role", "ClusterRole"))


def _cluster_binding(binding: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    yield from _bound(binding, old, kinds=("ClusterRole",))


def _bound(binding: JsonObject, old: JsonObject | None, *, kinds: tuple[str, ...]) -> Iterator[Cause]:
    role = binding["roleRef"]
    yield from one_of("roleRef.apiGroup", role["apiGroup"], (_RBAC,))
    yield from one_of("roleRef.kind", role["kind"], kinds)
    if not role["name"]:
        yield required("roleRef.name")
    for index, subject in enumerate(binding.get("subjects", ())):
        yield from _subject(subject, f"subjects[{index}]", needs_namespace=len(kinds) == 1)
    if old is not None and role != old["roleRef"]:
        shown = {"APIGroup": role["apiGroup"], "Kind": role["kind"], "Name": role["name"]}
        yield invalid("roleRef", shown, "cannot change roleRef")


def _subject(subject: JsonObject, at: str, *, needs_namespace: bool) -> Iterator[Cause]:
    """Users and groups are known to this group of kinds, accounts to the core group."""
    kind, name, group = subject["kind"], subject["name"], subject.get("apiGroup", "")
    if not name:
        yield required(f"{at}.name")
    match kind:
        case "ServiceAccount":
            if name:
                yield from (invalid(f"{at}.name", name, problem) for problem in subdomain_problems(name))
            yield from one_of(f"{at}.apiGroup", group, ("",))
            if needs_namespace and not subject.get("namespace"):
                yield required(f"{at}.namespace")
        case "User" | "Group":
            yield from one_of(f"{at}.apiGroup", group, (_RBAC,))
        case _:
            yield from one_of(f"{at}.kind", kind, ("ServiceAccount", "User", "Group"))


def _lease(lease: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    spec = lease["spec"]
    if spec.get("leaseDurationSeconds", 1) <= 0:
        yield invalid("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], "must be greater than 0")
    yield from non_negative("spec.leaseTransitions", spec.get("leaseTransitions"))


def _budget(budget: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    spec = budget["spec"]
    if "minAvailable" in spec and "maxUnavailable" in spec:
        shown = {
            "MinAvailable": spec["minAvailable"],
            "Selector": spec.get("selector"),
            "MaxUnavailable": spec["maxUnavailable"],
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        message = f"Invalid value: {in_go(shown)}: minAvailable and maxUnavailable cannot be both set"
        yield Cause("FieldValueInvalid", "spec", message)
    for field in ("minAvailable", "maxUnavailable"):
        yield from non_negative(f"spec.{field}", spec.get(field))


def _autoscaler(scaler: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    spec = scaler["spec"]
    if spec["minReplicas"] < 1:
        yield invalid("spec.minReplicas", spec["minReplicas"], "must be greater than or equal to 1")
    if spec["maxReplicas"] < 1:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    if spec["maxReplicas"] < spec["minReplicas"]:
        yield invalid("spec.maxReplicas", spec["maxReplicas"], "must be greater than or equal to `minReplicas`")
    for field in ("kind", "name"):
        if not spec["scaleTargetRef"][field]:
            yield required(f"spec.scaleTargetRef.{field}")
    if not spec["scaleTargetRef"].get("apiVersion"):
        yield invalid("spec.scaleTargetRef.apiVersion", "", "apiVersion must specify API group")


def _ingress(ingress: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    spec = ingress["spec"]
    if not spec.get("rules") and "defaultBackend" not in spec:
        yield invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
    for index, rule in enumerate(spec.get("rules", ())):
        for position, path in enumerate((rule.get("http") or {}).get("paths") or ()):
            at, text = f"spec.rules[{index}].http.paths[{position}]", path.get("path", "")
            if path["pathType"] != "ImplementationSpecific" and not text.startswith("/"):
                yield invalid(f"{at}.path", text, "must be an absolute path")
            yield from _backend(path["backend"], f"{at}.backend")
    if "defaultBackend" in spec:
        yield from _backend(spec["defaultBackend"], "spec.defaultBackend")


def _backend(backend: JsonObject, path: str) -> Iterator[Cause]:
    if not backend:
        yield invalid(path, "", "resource or service backend is required")
    elif len(backend) > 1:
        yield invalid(path, "", "cannot set both resource and service backends")


def _ingress_class(found: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    if not found["spec"].get("controller"):
        yield required("spec.controller")
    elif old is not None and found["spec"]["controller"] != old["spec"].get("controller"):
        yield invalid("spec.controller", found["spec"]["controller"], "field is immutable")


def _slice(found: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    if not found["addressType"]:
        yield required("addressType")
    else:
        yield from one_of("addressType", found["addressType"], ("FQDN", "IPv4", "IPv6"))


def _storage_class(found: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    if not found["provisioner"]:
        yield required("provisioner")
    if old is not None and found["provisioner"] != old["provisioner"]:
        yield forbidden("provisioner", "updates to provisioner are forbidden.")


def _policy(policy: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    spec = policy["spec"]
    if "matchConstraints" not in spec:
        yield required("spec.matchConstraints")
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        for field in ("validations", "auditAnnotations"):
            yield required(f"spec.{field}", "validations or auditAnnotations must contain at least one item")


def _policy_binding(binding: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    spec = binding["spec"]
    yield from named("spec.policyName", spec.get("policyName", ""), subdomain_problems)
    if not spec.get("validationActions"):
        yield required("spec.validationActions", "at least one validation action is required")


CHECKS: Final[dict[tuple[str, str], Check]] = {
    ("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
    ("coordination.k8s.io", "Lease"): _lease,
    ("discovery.k8s.io", "EndpointSlice"): _slice,
    ("networking.k8s.io", "Ingress"): _ingress,
    ("networking.k8s.io", "IngressClass"): _ingress_class,
    ("policy", "PodDisruptionBudget"): _budget,
    ("storage.k8s.io", "StorageClass"): _storage_class,
    (_ADMISSION, "ValidatingAdmissionPolicy"): _policy,
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): _policy_binding,
    (_RBAC, "ClusterRole"): _cluster_role,
    (_RBAC, "ClusterRoleBinding"): _cluster_binding,
    (_RBAC, "Role"): _role,
    (_RBAC, "RoleBinding"): _binding,
}
