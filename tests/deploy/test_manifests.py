"""An API server accepts the manifests of deploy/, and pods made from them can do as little as possible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kardinal.git.transfers import PUSH_ENDS_WITHIN
from kardinal.runtime.manager import GRACE_SECONDS, HELPERS_SECONDS
from tests.support.identities import documents_of
from tests.support.names import TEAM
from tests.support.server import ApiServer
from tests.support.strict import apply_strictly

JsonObject = dict[str, Any]

ROOT = Path(__file__).parents[2]
FOLDERS = [".", "admission", "agent", "supplychain", "tools"]
NAMESPACED = [
    "holidays/namespace.yaml",
    "secrets/namespace.yaml",
    "agent/secrets/namespace.yaml",
    "supplychain/tenant/namespace.yaml",
]
CLUSTER_WIDE = [
    "secrets/every-namespace.yaml",
    "agent/secrets/every-namespace.yaml",
    "supplychain/cluster-wide/accounts.yaml",
]
EVERY_KIND = "supplychain/cluster-wide/kinds.yaml"
MANIFESTS: list[JsonObject] = [doc for folder in FOLDERS for doc in documents_of(f"{folder}/*.yaml")]
"""In the order in which `kubectl apply -f` takes them."""

PODS = {obj["metadata"]["name"]: obj["spec"]["template"] for obj in MANIFESTS if obj["kind"] == "Deployment"}


async def test_every_manifest_is_applied_without_an_unknown_field(api_server: ApiServer) -> None:
    await apply_strictly(api_server.kubeconfig, MANIFESTS)


@pytest.mark.parametrize("path", [*NAMESPACED, *CLUSTER_WIDE])
async def test_rights_are_given_in_one_namespace_or_in_all(api_server: ApiServer, path: str) -> None:
    documents = list(documents_of(path))
    # As `kubectl apply -n` does.
    where = {"namespace": TEAM} if path in NAMESPACED else {}
    placed = [{**document, "metadata": {**document["metadata"], **where}} for document in documents]

    await apply_strictly(api_server.kubeconfig, placed)
    assert {document["kind"] for document in documents} == (
        {"Role", "RoleBinding"} if path in NAMESPACED else {"ClusterRole", "ClusterRoleBinding"}
    )


async def test_every_kind_may_be_watched_where_an_operator_says_so(api_server: ApiServer) -> None:
    [role] = documents_of(EVERY_KIND)
    await apply_strictly(api_server.kubeconfig, [role])
    assert role["rules"] == [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", "watch"]}]
    [aggregated] = [doc for doc in MANIFESTS if doc["metadata"]["name"] == "kardinal-supplychain-stamped"][:1]
    [selector] = aggregated["aggregationRule"]["clusterRoleSelectors"]
    assert selector["matchLabels"].items() <= role["metadata"]["labels"].items()


def test_no_default_manifest_lets_a_program_act_as_an_account() -> None:
    granted = [rule for doc in MANIFESTS for rule in doc.get("rules", ()) if "impersonate" in rule["verbs"]]
    assert granted == []


def test_no_default_manifest_opens_secrets_of_teams() -> None:
    """Every right to Secrets is in `secrets/`, but for the controller's own key in its own namespace."""
    opened = [
        (doc["kind"], doc["metadata"].get("namespace"), rule["verbs"], rule.get("resourceNames"))
        for doc in MANIFESTS
        for rule in doc.get("rules", ())
        if {"secrets", "*"} & set(rule.get("resources", ()))
    ]
    assert opened == [
        ("Role", "kardinal-system", ["create"], None),
        ("Role", "kardinal-system", ["get"], ["kardinal-attestation", "kardinal-ui"]),
    ]


def test_no_manifest_grants_a_wildcard_but_policies_look_at_everything() -> None:
    """A new kind is covered by the policies of both groups, and by no role before that is decided.

    The one that lets supply chains watch every kind is for clusters of one owner, and stands apart.
    """
    files = [doc for path in [*NAMESPACED, *CLUSTER_WIDE] for doc in documents_of(path)]
    granted = [rule for doc in [*MANIFESTS, *files] for rule in doc.get("rules", ())]
    assert [rule for rule in granted if "*" in str(rule)] == []
    looked_at = {
        (doc["metadata"]["name"], tuple(rule["apiGroups"]), tuple(rule["resources"]))
        for doc in MANIFESTS
        if doc["kind"] == "ValidatingAdmissionPolicy"
        for rule in doc["spec"]["matchConstraints"]["resourceRules"]
    }
    both = ("kardinal.io", "experimental.kro.run")
    assert {("kardinal-statuses", both, ("*/status",)), ("kardinal-internal-marks", both, ("*",))} <= looked_at


def test_a_kind_has_no_subresource_that_no_policy_looks_at() -> None:
    for path in sorted((ROOT / "crds").glob("*.yaml")):
        for version in yaml.load(path.read_bytes(), yaml.CSafeLoader)["spec"]["versions"]:
            assert version.get("subresources", {}).keys() <= {"status"}, path.name


def test_every_policy_is_bound_to_deny_and_fails_closed() -> None:
    policies = {doc["metadata"]["name"]: doc for doc in MANIFESTS if doc["kind"] == "ValidatingAdmissionPolicy"}
    bound = {
        doc["spec"]["policyName"]: doc["spec"]["validationActions"]
        for doc in MANIFESTS
        if doc["kind"] == "ValidatingAdmissionPolicyBinding"
    }
    assert bound == {name: ["Deny"] for name in policies}
    for policy in policies.values():
        [rule] = policy["spec"]["matchConstraints"]["resourceRules"]
        assert policy["spec"]["failurePolicy"] == "Fail"
        assert set(rule["operations"]) <= {"CREATE", "UPDATE"}, "deletion is never looked at"
        assert all(one["message"] and one["reason"] == "Forbidden" for one in policy["spec"]["validations"])


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
    """Supply chains have no mirrors of repositories, and so no cache."""
    pod = PODS[program]["spec"]
    writable = {volume["name"] for volume in pod["volumes"] if "emptyDir" in volume}
    mounts = pod["containers"][0]["volumeMounts"]

    places = {"/tmp"} if program == "kardinal-supplychain" else {"/var/cache/kardinal", "/tmp"}  # noqa: S108
    assert {mount["mountPath"] for mount in mounts if mount["name"] in writable} == places
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
    assert ports_of("kardinal-controller") == {"api": 8083, "metrics": 8080, "probes": 8081, "ui": 8082}
    assert ports_of("kardinal-agent") == {"metrics": 8085, "probes": 8086}
    assert ports_of("kardinal-supplychain") == {"metrics": 8087, "probes": 8088}


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


@pytest.mark.parametrize("program", sorted(PODS))
def test_a_pod_is_given_the_time_in_which_a_push_to_a_host_may_end(program: str) -> None:
    """Kubernetes kills what is there when it is over: runs, then helpers, and one of those waits for the push."""
    needed = GRACE_SECONDS + HELPERS_SECONDS
    assert PODS[program]["spec"]["terminationGracePeriodSeconds"] > needed
    assert PUSH_ENDS_WITHIN < HELPERS_SECONDS
