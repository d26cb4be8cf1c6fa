"""ServiceAccounts, their tokens, and requests that have none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.wire import Api

covers = pytest.mark.covers

REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


@covers("accounts", "get", "success")
async def test_every_namespace_has_an_account(api: Api) -> None:
    path = api.path("serviceaccounts", "default")
    await api.until(lambda: _found(api, path))
    first = await api.get(path)
    await api.silent.delete(path)
    await api.until(lambda: _found(api, path))
    assert (await api.get(path)).body["metadata"]["uid"] != first.body["metadata"]["uid"]


async def _found(api: Api, path: str) -> bool:
    return (await api.silent.get(path)).status == 200


@covers("accounts", "create", "success")
@pytest.mark.parametrize(
    "spec",
    [{}, {"expirationSeconds": 600, "audiences": ["a", "b"]}],
    ids=["as-it-comes", "for-others"],
)
async def test_an_account_gets_a_token(api: Api, spec: dict[str, Any]) -> None:
    path = await _account(api)
    answer = await api.post(f"{path}/token", {"spec": spec} if spec else {})
    assert answer.status == 201
    assert answer.body["status"]["token"].count(".") == 2


@covers("accounts", "create", "refusal")
@pytest.mark.parametrize(
    "body",
    [
        {"spec": {"expirationSeconds": 5}},
        {"spec": {"expirationSeconds": 1 << 33}},
        {"metadata": {"name": "other"}},
        {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": "nope"}}},
        {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "nope"}}},
    ],
    ids=["short", "long", "name", "missing", "unbindable"],
)
async def test_a_request_for_a_token_has_to_make_sense(api: Api, body: dict[str, Any]) -> None:
    path = await _account(api)
    assert (await api.post(f"{path}/token", body)).status in {400, 404, 422}


@covers("accounts", "create", "refusal")
async def test_an_account_that_is_not_there_gets_no_token(api: Api) -> None:
    assert (await api.post(api.path("serviceaccounts", "nobody", subresource="token"), {})).status == 404


@covers("accounts", "get", "refusal")
async def test_a_token_is_made_and_never_shown_again(api: Api) -> None:
    path = await _account(api)
    assert (await api.get(f"{path}/token")).status == 405
    assert (await api.put(f"{path}/token", {})).status == 405


@covers("accounts", "create", "success")
async def test_a_token_speaks_for_its_account(api: Api) -> None:
    path = await _account(api)
    token = (await api.silent.post(f"{path}/token", {})).body["status"]["token"]
    bot = api.with_token(token)
    answer = await bot.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert answer.body["status"]["userInfo"]["username"] == f"system:serviceaccount:{api.namespace}:bot"
    assert (await bot.get(api.path("pods"))).status == 403


@covers("accounts", "create", "success")
async def test_a_token_is_reviewed_for_its_audiences(api: Api) -> None:
    path = await _account(api)
    mine = (await api.silent.post(f"{path}/token", {})).body["status"]["token"]
    request = {"spec": {"audiences": ["a", "b"]}}
    theirs = (await api.silent.post(f"{path}/token", request)).body["status"]["token"]
    for token, audiences in ((mine, []), (mine, ["z"]), (theirs, []), (theirs, ["b", "z"])):
        spec = {"token": token} | ({"audiences": audiences} if audiences else {})
        answer = await api.post(REVIEWS, {"spec": spec})
        assert answer.body["status"].get("authenticated", False) is (
            audiences != ["z"] and bool(audiences or token == mine)
        )
    assert (await api.with_token(theirs).get("/version")).status == 401


@covers("accounts", "create", "refusal")
async def test_a_review_needs_a_token(api: Api) -> None:
    assert (await api.post(REVIEWS, {"spec": {}})).status == 400
    assert (await api.post(REVIEWS, {"spec": {"token": "made-up"}})).body["status"]["error"] == "invalid bearer token"


@covers("accounts", "delete", "success")
async def test_a_token_dies_with_its_account(api: Api) -> None:
    path = await _account(api)
    bot = api.with_token((await api.silent.post(f"{path}/token", {})).body["status"]["token"])
    assert (await bot.silent.get("/version")).status == 200
    await api.silent.delete(path)
    await api.until(lambda: _unknown(bot))
    assert (await bot.get("/version")).status == 401


@covers("accounts", "delete", "success")
async def test_a_token_dies_with_what_it_is_bound_to(api: Api) -> None:
    path, secret = await _account(api), api.path("secrets", "held")
    await api.silent.post(api.path("secrets"), {"metadata": {"name": "held"}})
    bound = {"apiVersion": "v1", "kind": "Secret", "name": "held"}
    issued = await api.post(f"{path}/token", {"spec": {"boundObjectRef": bound}})
    bot = api.with_token(issued.body["status"]["token"])
    assert (await bot.silent.get("/version")).status == 200
    await api.silent.delete(secret)
    await api.until(lambda: _unknown(bot))


async def _unknown(api: Api) -> bool:
    return (await api.silent.get("/version")).status == 401


async def _account(api: Api) -> str:
    """The path of an account of this test."""
    accounts = api.path("serviceaccounts")
    created = await api.silent.post(accounts, {"metadata": {"name": "bot"}})
    assert created.status == 201, created.body
    return f"{accounts}/bot"


@covers("accounts", "get", "refusal")
@pytest.mark.parametrize(
    "header",
    ["Bearer wrong", "Bearer a.b.c", "bearer wrong", "Bearer", "Bearer  wrong", "Basic dG9rOnRvaw==", ""],
    ids=["wrong", "jwt", "small", "empty", "spaced", "basic", "none"],
)
@pytest.mark.parametrize("path", ["/version", "/api/v1/namespaces/default/secrets/a", "/nothing", "/healthz"])
async def test_nobody_gets_in_without_a_token_that_is_known(api: Api, header: str, path: str) -> None:
    nobody = api.with_token("")
    answer = await nobody("GET", path, headers={"Authorization": header} if header else {})
    has_token = header.lower().startswith("bearer ") and header != "Bearer  wrong"
    assert answer.status == (200 if path == "/healthz" and not has_token else 401)
