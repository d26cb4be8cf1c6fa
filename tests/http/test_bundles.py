"""`POST /api/v1/bundles`, as CI meets it."""

from __future__ import annotations

import gzip
import io
from dataclasses import replace
from typing import Any

import orjson
import pytest

from kardinal.promotion.kinds import BUNDLE
from tests.support.clock import VirtualClock
from tests.support.names import DEV, POLICIES, PROD, TEAM, of_run
from tests.support.webhook import Ci
from tests.support.world import World

BODY: dict[str, Any] = {
    "namespace": TEAM,
    "pipeline": "my-app",
    "artifacts": {"images": [{"name": "my-app", "reference": "ghcr.io/acme/my-app:1.2.3"}]},
    "provenance": {"commitSHA": "abc123def456", "author": "dana"},
    "labels": {"hotfix": "true"},
}


async def test_a_signed_post_creates_a_bundle(api: Ci, world: World) -> None:
    answer = await api.post(BODY)
    assert answer.status == 201
    assert answer.body["namespace"] == TEAM
    bundle = await world.get(BUNDLE, answer.body["name"])
    assert bundle["metadata"]["labels"] == {"kardinal.io/pipeline": "my-app", "hotfix": "true"}
    assert bundle["metadata"]["annotations"]["kardinal.io/source"] == "webhook"
    assert bundle["spec"]["artifacts"]["images"][0]["reference"] == "ghcr.io/acme/my-app:1.2.3"
    assert bundle["spec"]["provenance"]["author"] == "dana"
    assert bundle["metadata"]["name"].startswith("my-app-1-2-3-")


async def test_each_signature_makes_a_bundle_of_its_own(api: Ci) -> None:
    names = {(await api.post(BODY, age=age)).body["name"] for age in (0, 60, 120)}
    assert len(names) == 3


async def test_the_path_may_name_the_namespace(api: Ci, world: World) -> None:
    nameless = {name: value for name, value in BODY.items() if name != "namespace"}
    path = f"/api/v1/namespaces/{TEAM}/bundles"
    answer = await api.post(nameless, path=path)
    assert (answer.status, answer.body["namespace"]) == (201, TEAM)
    assert (await api.post(BODY, path=path)).status == 201
    assert (await api.post(BODY, path=path, token="wrong")).status == 401
    assert (await api.post(nameless, path="/api/v1/namespaces/..%2Fsecrets/bundles")).status == 404


async def test_a_body_that_contradicts_the_path_is_422(api: Ci, world: World) -> None:
    answer = await api.post({**BODY, "namespace": POLICIES}, path=f"/api/v1/namespaces/{TEAM}/bundles")
    assert answer.status == 422
    assert [error["field"] for error in answer.body["errors"]] == ["namespace"]
    assert await world.objects(BUNDLE) == []


@pytest.mark.parametrize(
    "credentials",
    [{"token": None}, {"key": None}, {"token": "wrong"}, {"key": "wrong"}, {"token": ""}],
    ids=["no token", "no signature", "wrong token", "wrong signature", "empty token"],
)
async def test_unauthenticated_request_gets_401_and_nothing_is_written(
    api: Ci, world: World, credentials: dict[str, Any]
) -> None:
    answer = await api.post(BODY, **credentials)
    assert answer.status == 401
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "Bearer" in answer.headers["WWW-Authenticate"]
    assert await world.objects(BUNDLE) == []


async def test_a_namespace_without_a_secret_accepts_no_request(api: Ci) -> None:
    answer = await api.post({**BODY, "namespace": POLICIES}, token="", key="")
    assert answer.status == 401
    answer = await api.post({**BODY, "namespace": POLICIES})
    assert answer.status == 401
    assert "kardinal-webhook" in answer.body["detail"]


async def test_a_pipeline_that_is_not_there_is_404_only_to_those_who_may_know(api: Ci) -> None:
    unknown = {**BODY, "pipeline": "my-other-app"}
    assert (await api.post(unknown, token="wrong")).status == 401
    answer = await api.post(unknown)
    assert answer.status == 404
    assert "my-other-app" in answer.body["detail"]


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"piplines": "x"}, "piplines", "pipeline"),
        ({"artifacts": {"images": [{"refrence": "x"}]}}, "artifacts.images[0].refrence", "reference"),
        ({"artifacts": {"images": []}}, "artifacts.images", "at least one"),
        ({"artifacts": {"images": [{"reference": "acme/UPPER:1"}]}}, "artifacts.images[0]", "UPPER"),
        ({"artifacts": {"images": [{"reference": "a:1"}, {"reference": "a:2"}]}}, "artifacts.images[1]", "a is there"),
        ({"artifacts": {"images": [{"reference": "acme/app"}]}}, "artifacts.images[0]", "add a tag"),
        ({"intent": {"target": of_run("prd")}}, "intent.target", f"did you mean '{PROD}'"),
        ({"intent": {"skip": [of_run("dve")]}}, "intent.skip[0]", f"did you mean '{DEV}'"),
        ({"intent": {"requests": [{"id": "a", "action": "promote"}]}}, "intent.requests", "1 entries, and may have 0"),
        ({"type": "chart"}, "type", "image"),
        ({"labels": {"a": "not a label!"}}, "labels.a", "pattern"),
    ],
)
async def test_every_mistake_in_the_body_is_named_by_its_path(
    api: Ci, world: World, change: dict[str, Any], field: str, message: str
) -> None:
    answer = await api.post(BODY | change)
    assert answer.status == 422
    errors = {error["field"]: error["message"] for error in answer.body["errors"]}
    assert message in errors[field]
    assert await world.objects(BUNDLE) == []


@pytest.mark.parametrize("body", [b"{", b"[]", b'"text"', b"\xff"])
async def test_a_body_that_is_no_json_object_is_422(api: Ci, body: bytes) -> None:
    assert (await api.post(body)).status == 422


async def test_a_body_over_one_mebibyte_is_413(api: Ci) -> None:
    padded = io.BytesIO(orjson.dumps({**BODY, "padding": "x" * 1024 * 1024}))
    headers = {"Authorization": "Bearer t", "X-Kardinal-Signature-256": "sha256=00"}
    async with api.session.post(f"{api.url}/api/v1/bundles", data=padded, headers=headers) as response:
        assert response.status == 413
        assert response.content_type == "application/problem+json"


@pytest.mark.virtual_time("a minute later")
async def test_the_hundred_and_first_bundle_in_a_minute_is_429_and_later_ones_are_welcome(
    api: Ci, clock: VirtualClock
) -> None:
    for index in range(100):
        assert (await api.post(BODY, age=index)).status == 201
    answer = await api.post(BODY, age=100)
    assert answer.status == 429
    assert 0 < int(answer.headers["Retry-After"]) <= 60
    await clock.advance(60)
    assert (await api.post(BODY)).status == 201


async def test_an_idempotency_key_makes_one_bundle_however_often_it_is_sent(api: Ci, world: World) -> None:
    first = await api.post(BODY, idempotency_key="run-7")
    again = await api.post(BODY, idempotency_key="run-7")
    assert (first.status, first.body) == (again.status, again.body)
    assert len(await world.objects(BUNDLE)) == 1


async def test_an_idempotency_key_with_another_body_is_409(api: Ci, world: World) -> None:
    await api.post(BODY, idempotency_key="run-7")
    other = {**BODY, "artifacts": {"images": [{"reference": "ghcr.io/acme/my-app:9.9.9"}]}}
    answer = await api.post(other, idempotency_key="run-7")
    assert answer.status == 409
    assert len(await world.objects(BUNDLE)) == 1


async def test_other_methods_and_paths_are_problems_too(api: Ci) -> None:
    async with api.session.get(f"{api.url}/api/v1/bundles") as response:
        assert response.status == 405
        assert response.headers["Allow"] == "POST"
        assert response.content_type == "application/problem+json"
    async with api.session.get(f"{api.url}/nothing") as response:
        assert response.status == 404


async def test_a_body_of_many_lists_is_refused_before_it_is_decoded(api: Ci) -> None:
    body = {**BODY, "padding": [[]] * 6_000}
    answer = await api.post(body, path=f"/api/v1/namespaces/{TEAM}/bundles")
    assert answer.status == 422
    assert "5,000 lists and objects" in answer.body["detail"]
    assert (await api.post(body)).status == 401


async def test_a_compressed_body_is_not_unpacked(api: Ci) -> None:
    delivery = api.signed(gzip.compress(b" " * 2**20))
    packed = replace(delivery, headers={**delivery.headers, "Content-Encoding": "gzip"})
    assert (await api.send(packed)).status == 415
