"""An API server accepts the manifests of deploy/, and pods made from them can do as little as possible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.server import ApiServer
from tests.support.strict import apply_strictly

JsonObject = dict[str, Any]

DEPLOY = Path(__file__).parents[2] / "deploy"
MANIFESTS: list[JsonObject] = [
    obj
    for directory in (DEPLOY, DEPLOY / "agent")
    for path in sorted(directory.glob("*.yaml"))
    for obj in yaml.load_all(path.read_bytes(), yaml.CSafeLoader)
]
"""In the order in which `kubectl apply -f` takes them."""

PODS = {obj["metadata"]["name"]: obj["spec"]["template"] for obj in MANIFESTS if obj["kind"] == "Deployment"}


async def test_every_manifest_is_applied_without_an_unknown_field(api_server: ApiServer) -> None:
    await apply_strictly(api_server.kubeconfig, MANIFESTS)


@pytest.mark.parametrize("program", PODS)
def test_a_pod_runs_without_privileges(program: str) -> None:
    pod = PODS[program]["spec"]
    [container] = pod["containers"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 65534
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


@pytest.mark.parametrize("program", PODS)
def test_a_pod_writes_to_its_cache_and_to_tmp_alone(program: str) -> None:
    pod = PODS[program]["spec"]
    writable = {volume["name"] for volume in pod["volumes"] if "emptyDir" in volume}
    mounts = pod["containers"][0]["volumeMounts"]

    assert {mount["mountPath"] for mount in mounts if mount["name"] in writable} == {"/var/cache/kardinal", "/tmp"}  # noqa: S108
    assert all(mount.get("readOnly") for mount in mounts if mount["name"] not in writable)
    assert all("sizeLimit" in volume["emptyDir"] for volume in pod["volumes"] if "emptyDir" in volume)


@pytest.mark.parametrize("program", PODS)
def test_a_pod_says_what_it_needs_and_how_it_is(program: str) -> None:
    [container] = PODS[program]["spec"]["containers"]
    ports = {port["name"] for port in container["ports"]}

    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    assert "memory" in container["resources"]["limits"]
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "probes"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "probes"}
    assert "probes" in ports


def test_ports_are_the_documented_ones() -> None:
    assert ports_of("kardinal-controller") == {"api": 8083, "metrics": 8080, "probes": 8081}
    assert ports_of("kardinal-agent") == {"metrics": 8085, "probes": 8086}


def test_there_is_one_writer_at_a_time() -> None:
    for obj in MANIFESTS:
        if obj["kind"] == "Deployment":
            assert obj["spec"]["replicas"] == 1
            assert obj["spec"]["strategy"] == {"type": "Recreate"}


def test_services_select_pods_and_ports_that_exist() -> None:
    for service in (obj for obj in MANIFESTS if obj["kind"] == "Service"):
        [(name, pod)] = [
            (name, pod)
            for name, pod in PODS.items()
            if service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
        ]
        for port in service["spec"]["ports"]:
            assert ports_of(name)[port["targetPort"]] == port["port"], pod


def ports_of(program: str) -> dict[str, int]:
    [container] = PODS[program]["spec"]["containers"]
    return {port["name"]: port["containerPort"] for port in container["ports"]}
