"""Built-in kinds: what the server refuses, and in which words."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.local.contract.manifests import manifest
from tests.local.contract.wire import Api

covers = pytest.mark.covers
ABSENT = object()

DEPLOYMENT, POD, SERVICE, JOB = "deployments.apps", "pods", "services", "jobs.batch"
TEMPLATE = "spec.template.spec"


def changed(document: dict[str, Any], *changes: tuple[str, Any]) -> dict[str, Any]:
    """The document with some fields set, or taken away; a path steps through lists by index."""
    document = copy.deepcopy(document)
    for path, value in changes:
        *above, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        place: Any = document
        for step in above:
            place = place[step] if isinstance(step, int) else place.setdefault(step, {})
        if value is ABSENT:
            del place[last]
        else:
            place[last] = value
    return document


REFUSED: dict[str, tuple[str, list[tuple[str, Any]]]] = {
    "no-containers": (DEPLOYMENT, [(f"{TEMPLATE}.containers", [])]),
    "container-without-name": (DEPLOYMENT, [(f"{TEMPLATE}.containers.0.name", ABSENT)]),
    "container-name": (POD, [("spec.containers.0.name", "Web_1")]),
    "two-containers-of-a-name": (POD, [("spec.containers.1.name", "web")]),
    "container-without-image": (POD, [("spec.containers.1.image", ABSENT)]),
    "image-with-space": (POD, [("spec.containers.1.image", " a")]),
    "pull-policy": (POD, [("spec.containers.0.imagePullPolicy", "Sometimes")]),
    "port-zero": (POD, [("spec.containers.0.ports.0.containerPort", 0)]),
    "port-range": (POD, [("spec.containers.0.ports.0.containerPort", 70000)]),
    "port-protocol": (POD, [("spec.containers.0.ports.0.protocol", "tcp")]),
    "port-name": (POD, [("spec.containers.0.ports.0.name", "a-port-name-that-is-long")]),
    "env-name": (POD, [("spec.containers.0.env.0.name", "")]),
    "env-two-sources": (POD, [("spec.containers.0.env.1.value", "x")]),
    "mount-without-volume": (POD, [("spec.containers.0.volumeMounts.0.name", "nothing")]),
    "mount-without-path": (POD, [("spec.containers.0.volumeMounts.0.mountPath", "")]),
    "two-volumes-of-a-name": (POD, [("spec.volumes.1.name", "config")]),
    "volume-name": (POD, [("spec.volumes.1.name", "a b")]),
    "volume-of-two-sources": (POD, [("spec.volumes.1.configMap", {"name": "a"})]),
    "probe-negative": (POD, [("spec.containers.0.livenessProbe.periodSeconds", -1)]),
    "probe-without-handler": (POD, [("spec.containers.0.livenessProbe.tcpSocket", ABSENT)]),
    "probe-ports": (
        DEPLOYMENT,
        [
            (f"{TEMPLATE}.containers.0.livenessProbe", {"httpGet": {"port": 0, "scheme": "FTP"}}),
            (f"{TEMPLATE}.containers.0.readinessProbe", {"tcpSocket": {"port": "A--b"}}),
            (f"{TEMPLATE}.containers.0.startupProbe", {"grpc": {"port": 70000}}),
        ],
    ),
    "probe-of-two-handlers": (
        POD,
        [("spec.containers.0.livenessProbe", {"httpGet": {"port": 80}, "grpc": {"port": 80}, "exec": {}})],
    ),
    "probe-headers": (
        POD,
        [("spec.containers.0.livenessProbe", {"httpGet": {"port": 80, "httpHeaders": [{"name": "a b"}]}})],
    ),
    "restart-policy": (POD, [("spec.restartPolicy", "Sometimes")]),
    "dns-policy": (POD, [("spec.dnsPolicy", "Sometimes")]),
    "request-above-limit": (POD, [("spec.containers.0.resources.requests.memory", "2Gi")]),
    "negative-request": (POD, [("spec.containers.0.resources.requests.cpu", "-1")]),
    "service-account-name": (POD, [("spec.serviceAccountName", "A_b")]),
    "node-selector": (POD, [("spec.nodeSelector", {"a b": "c"})]),
    "tolerations": (
        DEPLOYMENT,
        [
            (
                f"{TEMPLATE}.tolerations",
                [
                    {"operator": "Sometimes", "effect": "NoWhere"},
                    {"key": "a b", "operator": "Exists", "value": "c"},
                    {"key": "a", "value": "b c", "tolerationSeconds": 5},
                    {"key": "a", "operator": "Lt", "value": "5"},
                ],
            )
        ],
    ),
    "host-aliases": (DEPLOYMENT, [(f"{TEMPLATE}.hostAliases", [{"ip": "here", "hostnames": ["a", "A_b"]}])]),
    "template-labels": (DEPLOYMENT, [("spec.template.metadata.labels", {"app": "web", "a b": "c d"})]),
    "selector-and-labels": (DEPLOYMENT, [("spec.template.metadata.labels", {"app": "other"})]),
    "no-selector": (DEPLOYMENT, [("spec.selector", ABSENT)]),
    "empty-selector": (DEPLOYMENT, [("spec.selector", {})]),
    "selector-operator": (
        DEPLOYMENT,
        [("spec.selector", {"matchExpressions": [{"key": "app", "operator": "Sometimes"}]})],
    ),
    "selector-values": (DEPLOYMENT, [("spec.selector", {"matchExpressions": [{"key": "app", "operator": "In"}]})]),
    "negative-replicas": (DEPLOYMENT, [("spec.replicas", -1)]),
    "deployment-restart-policy": (DEPLOYMENT, [(f"{TEMPLATE}.restartPolicy", "Never")]),
    "strategy": (DEPLOYMENT, [("spec.strategy", {"type": "Sometimes"})]),
    "recreate-with-limits": (
        DEPLOYMENT,
        [("spec.strategy", {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}})],
    ),
    "no-surge-and-none-unavailable": (
        DEPLOYMENT,
        [("spec.strategy.rollingUpdate", {"maxSurge": 0, "maxUnavailable": 0})],
    ),
    "surge-in-words": (DEPLOYMENT, [("spec.strategy.rollingUpdate", {"maxSurge": "many"})]),
    "deadline": (DEPLOYMENT, [("spec.progressDeadlineSeconds", 5), ("spec.minReadySeconds", 5)]),
    "stateful-selector-and-labels": ("statefulsets.apps", [("spec.template.metadata.labels", {"app": "other"})]),
    "management-policy": ("statefulsets.apps", [("spec.podManagementPolicy", "Sometimes")]),
    "daemon-selector-and-labels": ("daemonsets.apps", [("spec.template.metadata.labels", {"app": "other"})]),
    "job-restart-policy": (JOB, [(f"{TEMPLATE}.restartPolicy", "Always")]),
    "job-negative": (JOB, [("spec.backoffLimit", -1), ("spec.completions", -1)]),
    "job-selector": (JOB, [("spec.selector", {"matchLabels": {"a": "b"}})]),
    "schedule": ("cronjobs.batch", [("spec.schedule", "now and then")]),
    "concurrency-policy": ("cronjobs.batch", [("spec.concurrencyPolicy", "Sometimes")]),
    "config-key": ("configmaps", [("data", {"a b": "c"})]),
    "config-without-key": ("configmaps", [("data", {"": "d"})]),
    "config-twice": ("configmaps", [("data", {"b": "c"})]),
    "secret-key": ("secrets", [("stringData", {"a b": "c"})]),
    "secret-tls": ("secrets", [("type", "kubernetes.io/tls")]),
    "secret-docker": ("secrets", [("type", "kubernetes.io/dockerconfigjson")]),
    "secret-docker-text": (
        "secrets",
        [("type", "kubernetes.io/dockerconfigjson"), ("stringData", {".dockerconfigjson": "x"})],
    ),
    "secret-docker-null": (
        "secrets",
        [("type", "kubernetes.io/dockerconfigjson"), ("data", {".dockerconfigjson": None})],
    ),
    "secret-basic": ("secrets", [("type", "kubernetes.io/basic-auth")]),
    "secret-ssh": ("secrets", [("type", "kubernetes.io/ssh-auth")]),
    "secret-token": ("secrets", [("type", "kubernetes.io/service-account-token")]),
    "service-without-ports": (SERVICE, [("spec.ports", ABSENT), ("spec.clusterIP", "")]),
    "service-type": (SERVICE, [("spec.type", "Sometimes")]),
    "service-port": (SERVICE, [("spec.ports.0.port", 0)]),
    "service-ports-without-names": (SERVICE, [("spec.ports", [{"port": 80}, {"port": 81}])]),
    "service-ports-twice": (SERVICE, [("spec.ports", [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}])]),
    "service-port-names-twice": (SERVICE, [("spec.ports", [{"port": 80, "name": "a"}, {"port": 81, "name": "a"}])]),
    "service-target-port": (SERVICE, [("spec.ports.0.targetPort", "A_b")]),
    "service-protocol": (SERVICE, [("spec.ports.0.protocol", "HTTP")]),
    "service-address": (SERVICE, [("spec.clusterIP", "here")]),
    "service-affinity": (SERVICE, [("spec.sessionAffinity", "Sometimes")]),
    "service-selector": (SERVICE, [("spec.selector", {"a b": "c"})]),
    "service-external-name": (SERVICE, [("spec.type", "ExternalName"), ("spec.clusterIP", "")]),
    "lease-duration": ("leases.coordination.k8s.io", [("spec.leaseDurationSeconds", 0)]),
    "lease-transitions": ("leases.coordination.k8s.io", [("spec.leaseTransitions", -1)]),
    "role-without-verbs": (
        "roles.rbac.authorization.k8s.io",
        [("rules", [{"apiGroups": [""], "resources": ["pods"]}])],
    ),
    "role-without-groups": ("roles.rbac.authorization.k8s.io", [("rules", [{"verbs": ["get"], "resources": ["a"]}])]),
    "role-without-resources": ("roles.rbac.authorization.k8s.io", [("rules", [{"verbs": ["get"], "apiGroups": [""]}])]),
    "role-of-urls": ("roles.rbac.authorization.k8s.io", [("rules", [{"verbs": ["get"], "nonResourceURLs": ["/x"]}])]),
    "binding-subject-kind": (
        "rolebindings.rbac.authorization.k8s.io",
        [("subjects", [{"kind": "Robot", "name": "a"}])],
    ),
    "binding-subject-without-name": ("rolebindings.rbac.authorization.k8s.io", [("subjects", [{"kind": "User"}])]),
    "binding-account-without-namespace": (
        "clusterrolebindings.rbac.authorization.k8s.io",
        [("subjects", [{"kind": "ServiceAccount", "name": "a"}])],
    ),
    "binding-role-kind": ("rolebindings.rbac.authorization.k8s.io", [("roleRef", {"kind": "Robot", "name": "a"})]),
    "binding-role-without-name": ("rolebindings.rbac.authorization.k8s.io", [("roleRef", {"kind": "Role"})]),
    "budget-of-both": ("poddisruptionbudgets.policy", [("spec.maxUnavailable", 1)]),
    "budget-negative": ("poddisruptionbudgets.policy", [("spec.minAvailable", -1)]),
    "claim-without-storage": ("persistentvolumeclaims", [("spec.resources", {})]),
    "claim-without-modes": ("persistentvolumeclaims", [("spec.accessModes", ABSENT)]),
    "claim-mode": ("persistentvolumeclaims", [("spec.accessModes", ["Sometimes"])]),
    "autoscaler-bounds": (
        "horizontalpodautoscalers.autoscaling",
        [("spec.minReplicas", 5), ("spec.maxReplicas", 3)],
    ),
    "ingress-of-nothing": ("ingresses.networking.k8s.io", [("spec", {})]),
    "ingress-path": (
        "ingresses.networking.k8s.io",
        [("spec", {"rules": [{"http": {"paths": [{"path": "x", "pathType": "Prefix"}]}}]})],
    ),
    "quota-negative": ("resourcequotas", [("spec.hard", {"pods": "-1"})]),
    "event-elsewhere": ("events", [("involvedObject", {"kind": "A", "name": "a", "namespace": "elsewhere"})]),
}


@covers("built-in", "create", "refusal")
@pytest.mark.parametrize("case", REFUSED)
async def test_what_a_built_in_kind_cannot_be_is_refused(api: Api, case: str) -> None:
    plural, changes = REFUSED[case]
    found = manifest(plural)
    refused = await api.post(found.path(api), changed(found.named("a"), *changes), dryRun="All")
    assert refused.status == 422, refused.body
    assert refused.causes


UPDATED: dict[str, tuple[str, dict[str, Any]]] = {
    "selector": (DEPLOYMENT, {"spec": {"selector": {"matchLabels": {"b": "c"}}}}),
    "selector-of-a-set": ("replicasets.apps", {"spec": {"selector": {"matchLabels": {"app": "web", "b": "c"}}}}),
    "stateful-service": ("statefulsets.apps", {"spec": {"serviceName": "other"}}),
    "job-template": (JOB, {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}),
    "job-completions": (JOB, {"spec": {"completions": 7}}),
    "pod-spec": (POD, {"spec": {"serviceAccountName": "other"}}),
    "secret-type": ("secrets", {"type": "other"}),
    "service-address": (SERVICE, {"spec": {"clusterIP": "10.0.0.200"}}),
    "role-ref": ("rolebindings.rbac.authorization.k8s.io", {"roleRef": {"name": "other"}}),
    "claim": ("persistentvolumeclaims", {"spec": {"accessModes": ["ReadOnlyMany"]}}),
    "revision-data": ("controllerrevisions.apps", {"data": {"a": 2}}),
}


@covers("built-in", "update", "refusal")
@pytest.mark.parametrize("case", UPDATED)
async def test_what_cannot_change_is_refused(api: Api, case: str) -> None:
    plural, change = UPDATED[case]
    found = manifest(plural)
    await api.silent.post(found.path(api), found.named("a"))
    # Some refusals end in a difference of Go structs.
    loose = "loose" if case in ("job-template", "pod-spec", "claim") else ""
    refused = await api.merge(found.path(api, "a"), change, message=loose, dryRun="All")
    assert refused.status == 422, refused.body


@covers("built-in", "update", "refusal")
@pytest.mark.parametrize("plural", ["configmaps", "secrets"])
async def test_what_was_made_immutable_stays_as_it_is(api: Api, plural: str) -> None:
    found = manifest(plural)
    await api.silent.post(found.path(api), found.named("a", immutable=True))
    assert (await api.merge(found.path(api, "a"), {"data": {"a": "Yg=="}})).status == 422
    assert (await api.merge(found.path(api, "a"), {"immutable": False})).status == 422
    assert (await api.merge(found.path(api, "a"), {"metadata": {"labels": {"a": "b"}}})).status == 200


@covers("built-in", "patch", "refusal")
async def test_no_bytes_that_were_made_immutable_are_not_made_null(api: Api) -> None:
    found = manifest("configmaps")
    await api.silent.post(found.path(api), found.named("a", immutable=True, binaryData={"none": ""}))
    refused = await api.json(found.path(api, "a"), [{"op": "replace", "path": "/binaryData/none", "value": None}])
    assert refused.status == 422


@covers("built-in", "create", "refusal")
async def test_a_config_map_holds_no_more_than_a_mebibyte(api: Api) -> None:
    found = manifest("configmaps")
    refused = await api.post(found.path(api), found.named("a", data={"a": "x" * (1 << 20)}), dryRun="All")
    assert refused.status == 422
