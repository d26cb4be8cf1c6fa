"""Webhooks and admission policies: a real server asks them, the local plane keeps them and says that it does not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.examples import config_map
from tests.local.contract.wire import Api

covers = pytest.mark.covers

GROUP = "admissionregistration.k8s.io"
RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]

JsonObject = dict[str, Any]


@covers("admission", "create", "success")
@pytest.mark.differs("admission-webhooks")
@pytest.mark.parametrize("kind", ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"])
async def test_a_webhook_has_its_say_on_a_real_server_only(api: Api, kind: str) -> None:
    hook = {
        "name": "hook.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": 1,
        # Nobody is there, and the default is to refuse then.
        "clientConfig": {"url": "https://127.0.0.1:1/hook"},
        "namespaceSelector": _this_namespace(api),
        "rules": RULES,
    }
    await _stored(api, kind, {"webhooks": [hook]})
    if api.real:
        await api.until(lambda: _refused(api, 500))
    else:
        assert (await api.silent.post(api.path("configmaps"), config_map("a"))).status == 201


@covers("admission", "create", "success")
@pytest.mark.differs("admission-policies")
async def test_a_policy_has_its_say_on_a_real_server_only(api: Api) -> None:
    policy = {
        "matchConstraints": {"resourceRules": RULES},
        "validations": [{"expression": "false", "message": "never"}],
    }
    await _stored(api, "ValidatingAdmissionPolicy", {"spec": policy})
    binding = {
        "policyName": api.namespace,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": _this_namespace(api)},
    }
    await _stored(api, "ValidatingAdmissionPolicyBinding", {"spec": binding})
    if api.real:
        await api.until(lambda: _refused(api, 422))
    else:
        assert (await api.silent.post(api.path("configmaps"), config_map("a"))).status == 201


async def _stored(api: Api, kind: str, content: JsonObject) -> None:
    """Create, change and apply it; the local plane warns every time."""
    plural = f"{kind.lower().removesuffix('y')}ies" if kind.endswith("y") else f"{kind.lower()}s"
    path = api.path(plural, group=GROUP, namespace=None)
    name = api.namespace
    api.scope.made(f"{path}/{name}")
    document = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, **content}
    created = await api.post(path, document)
    changed = await api.merge(f"{path}/{name}", {"metadata": {"labels": {"a": "b"}}})
    read = await api.get(f"{path}/{name}")
    assert [answer.status for answer in (created, changed, read)] == [201, 200, 200]
    warning = None if api.real else f'299 - "{kind}: stored, not enforced"'
    assert [answer.headers.get("Warning") for answer in (created, changed, read)] == [warning, warning, None]


def _this_namespace(api: Api) -> JsonObject:
    return {"matchLabels": {"kubernetes.io/metadata.name": api.namespace}}


async def _refused(api: Api, status: int) -> bool:
    probe = {"metadata": {"generateName": "probe-"}}
    return (await api.silent.post(api.path("configmaps"), probe)).status == status
