"""The bodies of refusals: reason, code, details and causes."""

from __future__ import annotations

import pytest

from tests.local.contract.examples import config_map, deployment
from tests.local.contract.wire import Api

covers = pytest.mark.covers


@covers("errors", "get", "refusal")
async def test_what_is_not_there_is_named(api: Api) -> None:
    await api.define(api.widgets())
    for path in (
        api.path("configmaps", "none"),
        api.path("deployments", "none", group="apps"),
        api.path("widgets", "none", group=api.group),
        api.path("deployments", "none", group="apps", subresource="status"),
        api.path("namespaces", "no-such-namespace", namespace=None),
        api.path("clusterroles", "none", group="rbac.authorization.k8s.io", namespace=None),
    ):
        missing = await api.get(path)
        assert (missing.status, missing.body["reason"], missing.body["code"]) == (404, "NotFound", 404)
        assert missing.body["kind"] == "Status"
        assert missing.body["details"]["name"] in {"none", "no-such-namespace"}
        assert (await api.delete(path)).status in {404, 405}


@covers("errors", "create", "conflict")
async def test_a_conflict_names_the_object(api: Api) -> None:
    path = api.path("configmaps")
    created = await api.post(path, config_map("a"))
    taken = await api.post(path, config_map("a"))
    assert (taken.status, taken.body["reason"], taken.body["details"]["name"]) == (409, "AlreadyExists", "a")
    await api.merge(f"{path}/a", {"data": {"k": "v"}})
    stale = created.body | {"data": {"k": "w"}}
    refused = await api.put(f"{path}/a", stale)
    assert (refused.status, refused.body["reason"]) == (409, "Conflict")
    patched = await api.merge(f"{path}/a", {"metadata": {"resourceVersion": created.revision}})
    assert (patched.status, patched.body["reason"]) == (409, "Conflict")


@covers("errors", "create", "refusal")
async def test_every_cause_is_told_with_its_field(api: Api) -> None:
    await api.define(api.widgets())
    path = api.path("widgets", group=api.group)
    one = await api.post(path, api.widget("a", size=0))
    assert (one.status, one.causes) == (422, [("FieldValueInvalid", "spec.size")])
    # In no order that could be recorded.
    several = await api.silent.post(path, api.widget("a", size=0, colour="blue"))
    assert {("FieldValueInvalid", "spec.size"), ("FieldValueNotSupported", "spec.colour")} <= set(several.causes)
    assert several.body["details"]["group"] == api.group
    assert several.body["details"]["kind"] == "Widget"


@covers("errors", "patch", "conflict")
async def test_a_field_of_another_manager_is_named_with_it(api: Api) -> None:
    path = api.path("configmaps", "a")
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1"}}
    await api.apply(path, manifest, fieldManager="one")
    refused = await api.apply(path, manifest | {"data": {"k": "2"}}, fieldManager="two")
    assert (refused.status, refused.body["reason"]) == (409, "Conflict")
    assert refused.causes == [("FieldManagerConflict", ".data.k")]


@covers("errors", "create", "refusal")
async def test_a_namespace_that_is_not_there_takes_nothing(api: Api) -> None:
    for path, obj in (
        (api.path("configmaps", namespace="no-such-namespace"), config_map("a")),
        (api.path("deployments", group="apps", namespace="no-such-namespace"), deployment("a")),
    ):
        refused = await api.post(path, obj)
        assert (refused.status, refused.body["reason"]) == (404, "NotFound")


@covers("errors", "get", "refusal")
async def test_a_token_that_nobody_gave_is_unauthorized(api: Api) -> None:
    for token in ("nobody", "a.b.c"):
        refused = await api.with_token(token).get(api.path("configmaps"))
        assert (refused.status, refused.body["reason"]) == (401, "Unauthorized")
    assert "details" not in refused.body


@covers("errors", "get", "refusal")
async def test_who_may_not_is_told_what_it_was(api: Api) -> None:
    nobody = api.as_user("contract-nobody")
    for path in (api.path("configmaps"), api.path("secrets", "a"), "/api/v1/namespaces", "/metrics"):
        refused = await nobody.get(path)
        assert (refused.status, refused.body["reason"], refused.body["code"]) == (403, "Forbidden", 403)
        assert 'User "contract-nobody" cannot' in refused.message


@covers("errors", "delete", "conflict")
async def test_a_precondition_that_fails_is_a_conflict(api: Api) -> None:
    path = api.path("configmaps")
    await api.post(path, config_map("a"))
    for precondition in ({"uid": "another"}, {"resourceVersion": "1"}):
        refused = await api.delete(f"{path}/a", {"preconditions": precondition})
        assert (refused.status, refused.body["reason"]) == (409, "Conflict")
