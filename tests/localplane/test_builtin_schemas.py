"""The schemas of the built-in kinds: usable, strict about names, and with the defaults people see."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.localplane.builtin.schemas import builtin_schema
from kardinal.localplane.patches.strategic import strategic_merge
from kardinal.localplane.schemas.structural import Outcome, compile_schema

KINDS = [
    ("", "v1", "ConfigMap"),
    ("", "v1", "Event"),
    ("", "v1", "Namespace"),
    ("", "v1", "Pod"),
    ("", "v1", "Secret"),
    ("", "v1", "Service"),
    ("", "v1", "ServiceAccount"),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "ReplicaSet"),
    ("apps", "v1", "StatefulSet"),
    ("coordination.k8s.io", "v1", "Lease"),
    ("events.k8s.io", "v1", "Event"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "v1", "Role"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
]

DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [
                    {
                        "name": "web",
                        "image": "ghcr.io/example/web:1.0.0",
                        "ports": [{"containerPort": 8080}],
                        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
                        "resources": {"limits": {"cpu": 1, "memory": "64Mi"}},
                    }
                ],
                "volumes": [{"name": "config", "configMap": {"name": "web"}}],
            },
        },
    },
}


def schema(group: str, version: str, kind: str) -> dict[str, Any]:
    found = builtin_schema(group, version, kind)
    assert found is not None
    return found


def processed(group: str, version: str, obj: dict[str, Any]) -> Outcome:
    return compile_schema(schema(group, version, obj["kind"]), field="schema").process(obj)


@pytest.mark.parametrize(("group", "version", "kind"), KINDS, ids=lambda part: part or "core")
def test_each_schema_is_structural(group: str, version: str, kind: str) -> None:
    compile_schema(schema(group, version, kind), field="schema")


def test_a_kind_without_a_schema_is_stored_as_it_comes() -> None:
    assert builtin_schema("batch", "v1", "Job") is None
    assert builtin_schema("apps", "v1beta1", "Deployment") is None


def test_a_deployment_gets_the_defaults_of_the_real_server() -> None:
    outcome = processed("apps", "v1", DEPLOYMENT)
    assert outcome.causes == ()
    assert outcome.unknown_fields == ()
    spec = outcome.object["spec"]
    pod = spec["template"]["spec"]
    [container] = pod["containers"]
    assert {key: spec[key] for key in ("progressDeadlineSeconds", "replicas", "revisionHistoryLimit", "strategy")} == {
        "progressDeadlineSeconds": 600,
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
    }
    assert {key: pod[key] for key in pod if key not in ("containers", "volumes")} == {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }
    assert container["ports"] == [{"containerPort": 8080, "protocol": "TCP"}]
    assert container["readinessProbe"] == {
        "failureThreshold": 3,
        "httpGet": {"path": "/ready", "port": "http", "scheme": "HTTP"},
        "periodSeconds": 10,
        "successThreshold": 1,
        "timeoutSeconds": 1,
    }
    assert container["terminationMessagePath"] == "/dev/termination-log"
    assert pod["volumes"] == [{"name": "config", "configMap": {"name": "web", "defaultMode": 420}}]


def test_a_misspelt_field_of_a_container_is_named() -> None:
    pod = {"containers": [{"name": "web", "imagePullPolcy": "Always", "env": [{"name": "A", "val": "1"}]}]}
    outcome = processed("", "v1", {"kind": "Pod", "spec": pod})
    assert outcome.unknown_fields == ("spec.containers[0].env[0].val", "spec.containers[0].imagePullPolcy")


def test_what_a_deployment_cannot_be_without_is_required() -> None:
    outcome = processed("apps", "v1", {"kind": "Deployment", "spec": {"template": {"spec": {"containers": [{}]}}}})
    assert [(cause.reason, cause.field) for cause in outcome.causes] == [
        ("FieldValueRequired", "spec.template.spec.containers[0].name"),
        ("FieldValueRequired", "spec.selector"),
    ]


def test_a_strategic_patch_changes_one_image_and_keeps_the_sidecar() -> None:
    template = DEPLOYMENT["spec"]["template"]
    containers = [*template["spec"]["containers"], {"name": "sidecar", "image": "proxy:1"}]
    live = {**DEPLOYMENT, "spec": {"template": {"spec": {"containers": containers}}}}
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "ghcr.io/example/web:1.1.0"}]}}}}
    patched = strategic_merge(live, patch, schema=schema("apps", "v1", "Deployment"))
    images = {item["name"]: item["image"] for item in patched["spec"]["template"]["spec"]["containers"]}
    assert images == {"web": "ghcr.io/example/web:1.1.0", "sidecar": "proxy:1"}


def test_an_event_of_the_new_api_must_say_when_it_happened() -> None:
    event = {"kind": "Event", "note": "x" * 1025, "series": {"count": 2}}
    outcome = processed("events.k8s.io", "v1", event)
    assert [(cause.reason, cause.field) for cause in outcome.causes] == [
        ("FieldValueTooLong", "note"),
        ("FieldValueRequired", "series.lastObservedTime"),
        ("FieldValueRequired", "eventTime"),
    ]
