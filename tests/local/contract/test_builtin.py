"""Built-in kinds: what the server makes of a manifest."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.manifests import MANIFESTS, Manifest, manifest
from tests.local.contract.wire import Api

covers = pytest.mark.covers
DROPPED = {"description"}


@covers("built-in", "create", "success")
@pytest.mark.parametrize("manifest", MANIFESTS, ids=str)
async def test_a_manifest_is_completed(api: Api, manifest: Manifest) -> None:
    # Dry: controllers have nothing to do, and what belongs to no namespace is nobody's to clean up.
    created = await api.post(manifest.path(api), manifest.placed(api, f"{api.namespace}-a"), dryRun="All")
    assert created.status == 201, created.body


@covers("built-in", "create", "success")
@pytest.mark.parametrize("manifest", MANIFESTS, ids=str)
async def test_nothing_but_a_name_is_completed_or_refused(api: Api, manifest: Manifest) -> None:
    answer = await api.post(manifest.path(api), {"metadata": {"name": f"{api.namespace}-a"}}, dryRun="All")
    assert answer.status in (201, 422)


@covers("tables", "list", "success")
@pytest.mark.parametrize("manifest", [one for one in MANIFESTS if one.namespaced], ids=str)
async def test_a_kind_has_its_columns(api: Api, manifest: Manifest) -> None:
    document = manifest.placed(api, "a")
    if str(manifest) == "pods":
        # Where there is a node the pod would run, at some moment.
        document |= {"spec": document["spec"] | {"schedulerName": "nobody"}}
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    # As the answer to its creation: a moment later, its controller may have begun its work.
    created = await api.silent("POST", manifest.path(api), document, headers=accept, includeObject="None")
    table: Any = created.body
    columns = [
        {key: value for key, value in column.items() if key not in DROPPED} for column in table["columnDefinitions"]
    ]
    api.note("columns", {"columns": columns, "cells": table["rows"][0]["cells"]})


@covers("built-in", "update", "success")
@pytest.mark.parametrize(
    "plural", ["configmaps", "roles.rbac.authorization.k8s.io", "cronjobs.batch", "ingresses.networking.k8s.io"]
)
async def test_metadata_is_no_new_generation(api: Api, plural: str) -> None:
    found = manifest(plural)
    await api.post(found.path(api), found.named("a"))
    await api.merge(found.path(api, "a"), {"metadata": {"labels": {"a": "b"}}})
    await api.merge(found.path(api, "a"), {"metadata": {"annotations": {"a": "b"}}})
    await api.merge(found.path(api, "a"), {"metadata": {"labels": {"a": "b"}}})


@covers("built-in", "update", "success")
async def test_a_disruption_budget_reports_through_its_status(api: Api) -> None:
    found = manifest("poddisruptionbudgets.policy")
    await api.post(found.path(api), found.named("a", status={"expectedPods": 7}))
    status = {"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 1}
    changed = {"metadata": {"labels": {"a": "b"}}, "spec": {"minAvailable": 2}, "status": status}
    written = await api.merge(found.path(api, "a", subresource="status"), changed)
    assert written.body["spec"]["minAvailable"] == 1
    await api.merge(found.path(api, "a"), {"spec": {"minAvailable": 3}, "status": {"expectedPods": 9}})
    await api.get(found.path(api, "a", subresource="status"))
