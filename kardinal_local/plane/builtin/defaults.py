"""Set the defaults that the real server has in its code and not in its OpenAPI document.

OpenAPI carries the defaults that stand as markers in Kubernetes' sources; most are set by code, and those are here. A
default belongs to a type and holds wherever the type occurs: a container is completed alike in a Pod, in a Deployment's
template and in a CronJob's. The exceptions are few and are those of the real server: a Pod gets `enableServiceLinks`
and requests from its limits, a template does not.

Types are named without the `io.k8s.api.` before them.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Final

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.kinds import crds

__all__ = ["COMPUTED", "DEFAULTS", "TEMPLATE_GENERATION"]

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"

Compute = Callable[[JsonObject], None]

_RBAC: Final = "rbac.authorization.k8s.io"
_WEBHOOK: Final[JsonObject] = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
}

DEFAULTS: Final[dict[str, JsonObject]] = {
    "admissionregistration.v1.MatchResources": {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
    },
    "admissionregistration.v1.MutatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    "admissionregistration.v1.MutatingWebhook": {**_WEBHOOK, "reinvocationPolicy": "Never"},
    "admissionregistration.v1.NamedRuleWithOperations": {"scope": "*"},
    "admissionregistration.v1.RuleWithOperations": {"scope": "*"},
    "admissionregistration.v1.ServiceReference": {"port": 443},
    "admissionregistration.v1.ValidatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    "admissionregistration.v1.ValidatingWebhook": _WEBHOOK,
    "apps.v1.DaemonSetSpec": {"revisionHistoryLimit": 10},
    "apps.v1.DaemonSetUpdateStrategy": {"type": "RollingUpdate"},
    "apps.v1.DeploymentSpec": {"progressDeadlineSeconds": 600, "replicas": 1, "revisionHistoryLimit": 10},
    "apps.v1.DeploymentStrategy": {"type": "RollingUpdate"},
    "apps.v1.ReplicaSetSpec": {"replicas": 1},
    "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    "apps.v1.StatefulSetSpec": {
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        "podManagementPolicy": "OrderedReady",
        "replicas": 1,
        "revisionHistoryLimit": 10,
    },
    "autoscaling.v2.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "batch.v1.CronJobSpec": {
        "concurrencyPolicy": "Allow",
        "failedJobsHistoryLimit": 1,
        "successfulJobsHistoryLimit": 3,
        "suspend": False,
    },
    "batch.v1.PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    "core.v1.ConfigMapVolumeSource": {"defaultMode": 0o644},
    "core.v1.Container": {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"},
    "core.v1.DownwardAPIVolumeSource": {"defaultMode": 0o644},
    "core.v1.EndpointPort": {"protocol": "TCP"},
    "core.v1.EphemeralContainer": {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    },
    "core.v1.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "core.v1.HostPathVolumeSource": {"type": ""},
    "core.v1.NamespaceStatus": {"phase": "Active"},
    "core.v1.ObjectFieldSelector": {"apiVersion": "v1"},
    "core.v1.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "core.v1.PersistentVolumeClaimStatus": {"phase": "Pending"},
    "core.v1.PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    "core.v1.PersistentVolumeStatus": {"phase": "Pending"},
    "core.v1.PodSpec": {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    },
    "core.v1.Probe": {"failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1},
    "core.v1.ProjectedVolumeSource": {"defaultMode": 0o644},
    "core.v1.Secret": {"type": "Opaque"},
    "core.v1.SecretVolumeSource": {"defaultMode": 0o644},
    "core.v1.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "core.v1.ServicePort": {"protocol": "TCP"},
    "core.v1.ServiceSpec": {"sessionAffinity": "None", "type": "ClusterIP"},
    "discovery.v1.EndpointPort": {"name": "", "protocol": "TCP"},
    "networking.v1.IngressClassParametersReference": {"scope": "Cluster"},
    "networking.v1.NetworkPolicyPort": {"protocol": "TCP"},
    "rbac.v1.RoleRef": {"apiGroup": _RBAC},
    "scheduling.v1.PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    "storage.v1.StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
}
"""What a field of a type is when nothing was given; an empty text is nothing."""


def _pull_policy(container: JsonObject) -> None:
    container.setdefault("imagePullPolicy", _policy_of(container.get("image", "")))


def _policy_of(image: str) -> str:
    """Always for what may be another image tomorrow."""
    name, at, _ = image.partition("@")
    _, colon, tag = name.rpartition("/")[2].partition(":")
    floating = tag == "latest" if colon else bool(name) and not at
    return "Always" if floating else "IfNotPresent"


def _volume(volume: JsonObject) -> None:
    sources = [key for key in volume if key != "name"]
    if not sources:
        volume["emptyDir"] = {}
    image = volume.get("image")
    if image is not None:
        image.setdefault("pullPolicy", _policy_of(image.get("reference", "")))


def _pod(pod: JsonObject) -> None:
    spec = pod["spec"]
    spec.setdefault("enableServiceLinks", True)
    for container in (*(spec.get("containers") or ()), *spec.get("initContainers", ())):
        resources = container["resources"]
        for name, amount in resources.get("limits", {}).items():
            resources.setdefault("requests", {}).setdefault(name, amount)
        if spec.get("hostNetwork"):
            for port in container.get("ports", ()):
                port.setdefault("hostPort", port["containerPort"])


def _pod_spec(spec: JsonObject) -> None:
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        # The older name of the field is still written.
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def _claim_templates(spec: JsonObject) -> None:
    for claim in spec.get("volumeClaimTemplates", ()):
        claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}


def _daemon_set(daemons: JsonObject) -> None:
    metadata = daemons["metadata"]
    metadata["annotations"] = {TEMPLATE_GENERATION: "0", **metadata.get("annotations", {})}


def _service(service: JsonObject) -> None:
    spec = service["spec"]
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = spec.get("sessionAffinityConfig") or {}
        if (config.get("clientIP") or {}).get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    for port in spec.get("ports", ()):
        if port["targetPort"] in (0, ""):
            port["targetPort"] = port["port"]
    if spec["type"] in ("NodePort", "LoadBalancer") or (spec["type"] == "ClusterIP" and spec.get("externalIPs")):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _rolling(most: JsonObject) -> Compute:
    def compute(strategy: JsonObject) -> None:
        if strategy["type"] == "RollingUpdate":
            strategy["rollingUpdate"] = {**most, **strategy.get("rollingUpdate", {})}

    return compute


def _stateful_strategy(strategy: JsonObject) -> None:
    if "type" not in strategy:
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"] = {"partition": 0, **strategy["rollingUpdate"]}


def _job_spec(spec: JsonObject) -> None:
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)


def _job(job: JsonObject) -> None:
    _job_spec(job["spec"])
    labels = job["spec"]["template"]["metadata"].get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)


def _autoscaler_spec(spec: JsonObject) -> None:
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is not None:
        percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
        up = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max"}
        policies = [{"type": "Pods", "value": 4, "periodSeconds": 15}, percent]
        behavior["scaleUp"] = {**up, "policies": policies, **behavior.get("scaleUp", {})}
        behavior["scaleDown"] = {"selectPolicy": "Max", "policies": [dict(percent)], **behavior.get("scaleDown", {})}


def _policy_types(spec: JsonObject) -> None:
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _subject(subject: JsonObject) -> None:
    if subject["kind"] in ("User", "Group"):
        subject.setdefault("apiGroup", _RBAC)


def _secret(secret: JsonObject) -> None:
    plain = secret.pop("stringData", None)
    if plain:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
        secret["data"] = {**secret.get("data", {}), **encoded}


def _namespace(namespace: JsonObject) -> None:
    metadata = namespace["metadata"]
    if metadata.get("name"):
        metadata["labels"] = {**metadata.get("labels", {}), "kubernetes.io/metadata.name": metadata["name"]}


def _limits(item: JsonObject) -> None:
    if item["type"] == "Container":
        default = {**item.get("max", {}), **item.get("default", {})}
        request = {**item.get("min", {}), **default, **item.get("defaultRequest", {})}
        item.update({key: value for key, value in (("default", default), ("defaultRequest", request)) if value})


COMPUTED: Final[dict[str, tuple[Compute, ...]]] = {
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec": (crds.fill,),
    "apps.v1.DaemonSet": (_daemon_set,),
    "apps.v1.DaemonSetUpdateStrategy": (_rolling({"maxSurge": 0, "maxUnavailable": 1}),),
    "apps.v1.DeploymentStrategy": (_rolling({"maxSurge": "25%", "maxUnavailable": "25%"}),),
    "apps.v1.StatefulSetSpec": (_claim_templates,),
    "apps.v1.StatefulSetUpdateStrategy": (_stateful_strategy,),
    "autoscaling.v2.HorizontalPodAutoscalerSpec": (_autoscaler_spec,),
    "batch.v1.Job": (_job,),
    "core.v1.Container": (_pull_policy,),
    "core.v1.EphemeralContainer": (_pull_policy,),
    "core.v1.LimitRangeItem": (_limits,),
    "core.v1.Namespace": (_namespace,),
    "core.v1.Pod": (_pod,),
    "core.v1.PodSpec": (_pod_spec,),
    "core.v1.Secret": (_secret,),
    "core.v1.Service": (_service,),
    "core.v1.Volume": (_volume,),
    "networking.v1.NetworkPolicySpec": (_policy_types,),
    "rbac.v1.Subject": (_subject,),
}
"""What depends on other fields; runs when everything below is complete."""
