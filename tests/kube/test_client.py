"""Verbs, errors and retries against a server that follows a script."""

from __future__ import annotations

import asyncio

import orjson
import pytest
import yaml
from aiohttp import web

from kardinal.kube import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Client,
    ClusterAccess,
    Conflict,
    Connection,
    ConnectionFailed,
    DeadlineExceeded,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    PatchType,
    ServerError,
    TooManyRequests,
    Unauthorized,
    UnsupportedMediaType,
    recorded_writes,
)
from kardinal.objects import CONFIG_MAP, SECRET, ResourceType
from tests.kube.conftest import ScriptedServer, failure, hang_up, reply, status_object, text

WIDGET = ResourceType("example.com", "v1", "Widget", "widgets")


def widget(name: str = "a", revision: str = "7", **metadata: object) -> dict[str, object]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "default", "uid": "u1", "resourceVersion": revision, **metadata},
    }


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", BadRequest),
        (401, "Unauthorized", Unauthorized),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (410, "Expired", Expired),
        (415, "UnsupportedMediaType", UnsupportedMediaType),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", TooManyRequests),
        (405, "MethodNotAllowed", ApiError),
        (500, "InternalError", ServerError),
        (504, "Timeout", ServerError),
    ],
)
async def test_a_status_becomes_the_error_of_its_reason(
    server: ScriptedServer, client: Client, code: int, reason: str, expected: type[ApiError]
) -> None:
    server.answers(failure(code, reason, "this is why"))
    with pytest.raises(expected) as caught:
        await client.get(WIDGET, "a", "default")
    assert type(caught.value) is expected
    assert (caught.value.status, caught.value.reason, str(caught.value)) == (code, reason, "this is why")


async def test_a_body_that_is_no_status_is_quoted_and_cut_short(server: ScriptedServer, client: Client) -> None:
    server.answers(text(502, "bad gateway " * 100))
    with pytest.raises(ServerError) as caught:
        await client.get(WIDGET, "a", "default")
    assert caught.value.message.startswith("bad gateway")
    assert len(caught.value.message) == 256


async def test_an_apply_conflict_lists_the_contested_fields(server: ScriptedServer, client: Client) -> None:
    cause = {"reason": "FieldManagerConflict", "message": 'conflict with "x"', "field": ".spec.image"}
    server.answers(reply(409, status_object(409, "Conflict", causes=[cause])))
    with pytest.raises(Conflict) as caught:
        await client.apply(WIDGET, widget(), field_manager="me")
    assert caught.value.fields == [".spec.image"]


async def test_a_retry_after_is_honoured_for_any_verb(
    server: ScriptedServer, client: Client, pauses: list[float]
) -> None:
    busy = failure(429, "TooManyRequests", Retry_After="2")
    server.answers(busy, failure(503, "ServiceUnavailable", Retry_After="1"), reply(201, widget()))
    created = await client.create(WIDGET, widget())
    assert created["metadata"]["name"] == "a"
    assert pauses == [2.0, 1.0]
    assert [seen.method for seen in server.seen] == ["POST"] * 3


async def test_after_ten_tries_the_refusal_is_raised(server: ScriptedServer, client: Client) -> None:
    server.answers(failure(429, "TooManyRequests", Retry_After="1"))
    with pytest.raises(TooManyRequests) as caught:
        await client.get(WIDGET, "a", "default")
    assert caught.value.retry_after == 1.0
    assert len(server.seen) == 10


async def test_a_wait_longer_than_the_deadline_is_not_begun(server: ScriptedServer, client: Client) -> None:
    server.answers(failure(429, "TooManyRequests", Retry_After="3600"))
    with pytest.raises(TooManyRequests):
        await client.get(WIDGET, "a", "default")
    assert len(server.seen) == 1


async def test_a_server_error_without_retry_after_is_not_retried(server: ScriptedServer, client: Client) -> None:
    server.answers(failure(500, "InternalError"))
    with pytest.raises(ServerError):
        await client.get(WIDGET, "a", "default")
    assert len(server.seen) == 1


async def test_a_revision_the_server_does_not_have_is_not_waited_for(server: ScriptedServer, client: Client) -> None:
    body = status_object(504, "Timeout", causes=[{"reason": "ResourceVersionTooLarge"}], retryAfterSeconds=1)
    server.answers(reply(504, body, Retry_After="1"))
    with pytest.raises(ServerError) as caught:
        await client.list(WIDGET, resource_version="99")
    assert caught.value.revision_too_large
    assert len(server.seen) == 1


async def test_a_get_is_repeated_when_its_connection_breaks(server: ScriptedServer, client: Client) -> None:
    server.answers(hang_up(), hang_up(), hang_up(), reply(200, widget()))
    found = await client.get(WIDGET, "a", "default")
    assert found["metadata"]["name"] == "a"


async def test_a_post_is_never_repeated_when_its_connection_breaks(server: ScriptedServer, client: Client) -> None:
    server.answers(hang_up(), reply(201, widget()))
    with pytest.raises(ConnectionFailed):
        await client.create(WIDGET, widget())
    assert len(server.seen) == 1


async def test_a_refused_connection_is_an_error_at_once(unused_tcp_port: int, pauses: list[float]) -> None:
    connection = Connection(ClusterAccess(f"http://127.0.0.1:{unused_tcp_port}"))
    async with Client(connection, user_agent="test") as client:
        with pytest.raises(ConnectionFailed):
            await client.get(WIDGET, "a", "default")
    assert pauses == []


async def test_a_server_that_does_not_answer_is_given_up(
    server: ScriptedServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kardinal.kube.transport.REQUEST_DEADLINE", 0.05)

    async def hang(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        return web.Response()

    server.answers(hang)
    with pytest.raises(DeadlineExceeded, match=r"GET .*/widgets/a: no answer"):
        await client.get(WIDGET, "a", "default")
    assert client.in_flight == 0


async def test_an_answer_that_is_not_json_is_not_an_api_server(server: ScriptedServer, client: Client) -> None:
    server.answers(text(200, "<html>hello</html>"))
    with pytest.raises(ConnectionFailed, match="is this an API server"):
        await client.get(WIDGET, "a", "default")


async def test_credentials_are_loaded_again_once_after_a_401(server: ScriptedServer) -> None:
    loads: list[ClusterAccess] = []

    async def load() -> ClusterAccess:
        loads.append(ClusterAccess(server.url, authorization="Bearer new"))
        return loads[-1]

    connection = Connection(ClusterAccess(server.url, authorization="Bearer old"), load=load)
    server.answers(failure(401, "Unauthorized"), reply(200, widget()))
    async with Client(connection, user_agent="test") as client:
        await client.get(WIDGET, "a", "default")
        assert [seen.headers["Authorization"] for seen in server.seen] == ["Bearer old", "Bearer new"]
        server.answers(failure(401, "Unauthorized"))
        with pytest.raises(Unauthorized):
            await client.get(WIDGET, "a", "default")
    assert len(loads) == 2
    assert len(server.seen) == 4


async def test_requests_that_meet_a_stale_token_share_one_reload(server: ScriptedServer) -> None:
    loads = 0

    async def load() -> ClusterAccess:
        nonlocal loads
        loads += 1
        await asyncio.sleep(0)
        return ClusterAccess(server.url, authorization="Bearer new")

    async def answer(request: object) -> object:
        fresh = request.headers["Authorization"] == "Bearer new"  # type: ignore[attr-defined]
        return await (reply(200, widget()) if fresh else failure(401, "Unauthorized"))(request)  # type: ignore[arg-type]

    server.answers(answer)  # type: ignore[arg-type]
    connection = Connection(ClusterAccess(server.url, authorization="Bearer old"), load=load)
    async with Client(connection, user_agent="test") as client:
        await asyncio.gather(*(client.get(WIDGET, "a", "default") for _ in range(8)))
    assert loads == 1


async def test_short_lived_credentials_are_loaded_before_they_are_refused(server: ScriptedServer) -> None:
    async def load() -> ClusterAccess:
        return ClusterAccess(server.url, authorization="Bearer new")

    connection = Connection(ClusterAccess(server.url, authorization="Bearer old", lifetime=0.0), load=load)
    server.answers(reply(200, widget()))
    async with Client(connection, user_agent="test") as client:
        await client.get(WIDGET, "a", "default")
    assert server.seen[0].headers["Authorization"] == "Bearer new"


def test_credentials_never_appear_in_a_representation() -> None:
    assert "hunter2" not in repr(ClusterAccess("https://x", authorization="Bearer hunter2", proxy="http://u:hunter2@p"))


@pytest.mark.parametrize("name", ["../secrets/x", "a/b", "..", "a?b", "a%2fb", "a b", "é", "a\nb"])
async def test_a_name_cannot_become_another_path(server: ScriptedServer, client: Client, name: str) -> None:
    server.answers(reply(200, widget()))
    with pytest.raises(BadRequest, match=r"metadata\.name"):
        await client.get(WIDGET, name, "default")
    with pytest.raises(BadRequest, match=r"metadata\.namespace"):
        await client.get(WIDGET, "a", name)
    assert server.seen == []


async def test_a_list_carries_selectors_pages_and_kinds(server: ScriptedServer, client: Client) -> None:
    item = {"metadata": {"name": "s", "namespace": "x"}}
    server.answers(reply(200, {"metadata": {"resourceVersion": "9", "continue": "more"}, "items": [item]}))
    page = await client.list(SECRET, "x", labels="a=b", fields="metadata.name=s", limit=5, continue_token="t")
    assert (page.resource_version, page.continue_token) == ("9", "more")
    assert (page.items[0]["apiVersion"], page.items[0]["kind"]) == ("v1", "Secret")
    assert server.seen[0].path == "/api/v1/namespaces/x/secrets"
    assert server.seen[0].query == {
        "labelSelector": "a=b",
        "fieldSelector": "metadata.name=s",
        "limit": "5",
        "continue": "t",
    }


async def test_an_empty_collection_may_have_null_items(server: ScriptedServer, client: Client) -> None:
    server.answers(reply(200, {"metadata": {"resourceVersion": "9"}, "items": None}))
    assert (await client.list(SECRET)).items == []


async def test_writes_use_the_media_type_and_parameters_of_their_verb(server: ScriptedServer, client: Client) -> None:
    server.answers(reply(200, widget()))
    await client.create(WIDGET, widget(), field_manager="me")
    await client.replace(WIDGET, widget(), subresource="status")
    await client.patch(WIDGET, "a", "default", [{"op": "remove", "path": "/x"}], kind=PatchType.JSON)
    await client.apply(WIDGET, widget(), field_manager="me", force=True)
    await client.delete(WIDGET, "a", "default", uid="u1")
    path = "/apis/example.com/v1/namespaces/default/widgets"
    assert [(seen.method, seen.path, seen.query, seen.headers["Content-Type"]) for seen in server.seen] == [
        ("POST", path, {"fieldManager": "me"}, "application/json"),
        ("PUT", f"{path}/a/status", {}, "application/json"),
        ("PATCH", f"{path}/a", {}, "application/json-patch+json"),
        ("PATCH", f"{path}/a", {"fieldManager": "me", "force": "true"}, "application/apply-patch+yaml"),
        ("DELETE", f"{path}/a", {}, "application/json"),
    ]
    assert server.seen[-1].body["preconditions"] == {"uid": "u1"}
    assert server.seen[-1].body["propagationPolicy"] == "Background"


async def test_applied_text_is_the_same_as_yaml(server: ScriptedServer, client: Client) -> None:
    """An API server refuses some characters of JSON in what is applied, and takes others for the end of a line."""
    bodies: list[bytes] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        bodies.append(await request.read())
        return await reply(200, widget())(request)

    server.answers(answer)
    text = "".join(map(chr, range(0x300))) + "\u2027\u2028\u2029\u202a\ufefe\ufeff\uff00\ufffd\ufffe\uffff\\u2028 😀"
    obj = {**widget(), "data": {text[0x70:0xB0]: text, "n": [2**53 + 1, 1.5, None, True]}}
    await client.apply(WIDGET, obj, field_manager="me")
    assert server.seen[0].body == obj
    assert yaml.load(bodies[0], yaml.CSafeLoader) == obj
    await client.replace(WIDGET, obj)
    assert bodies[1] == orjson.dumps(obj)


async def test_requests_in_flight_are_counted_with_their_retries(server: ScriptedServer) -> None:
    counts: list[int] = []

    async def sleep(_: float) -> None:
        counts.append(client.in_flight)

    server.answers(failure(429, "TooManyRequests", Retry_After="1"), reply(200, widget()))
    async with Client(Connection(ClusterAccess(server.url)), user_agent="test", sleep=sleep) as client:
        await client.get(WIDGET, "a", "default")
        assert counts == [1]
        assert client.in_flight == 0


async def test_every_answer_reaches_the_observers(server: ScriptedServer, client: Client) -> None:
    answers: list[tuple[str, int]] = []
    client.observe(lambda method, status: answers.append((method, status)))
    server.answers(reply(200, widget()), failure(404, "NotFound"))
    await client.get(WIDGET, "a", "default")
    with pytest.raises(NotFound):
        await client.get(WIDGET, "a", "default")
    assert answers == [("GET", 200), ("GET", 404)]


async def test_writes_are_recorded_where_a_log_is_open_and_child_tasks_share_it(
    server: ScriptedServer, client: Client
) -> None:
    server.answers(reply(200, widget(revision="12")))
    with recorded_writes() as writes:
        await asyncio.gather(client.create(WIDGET, widget()))
        await client.patch(WIDGET, "a", "default", {})
    await client.create(WIDGET, widget())
    assert [(write.name, write.revision) for write in writes] == [("a", 12), ("a", 12)]


async def test_a_delete_and_the_last_finalizer_going_are_recorded_as_gone(
    server: ScriptedServer, client: Client
) -> None:
    with recorded_writes() as writes:
        server.answers(reply(200, {"kind": "Status", "status": "Success", "details": {"uid": "u9"}}))
        await client.delete(WIDGET, "a", "default")
        server.answers(reply(200, widget(deletionTimestamp="2026-01-01T00:00:00Z")))
        await client.patch(WIDGET, "a", "default", {"metadata": {"finalizers": None}})
    assert [(write.uid, write.revision) for write in writes] == [("u9", None), ("u1", None)]


async def test_cluster_wide_paths_leave_out_the_namespace(server: ScriptedServer, client: Client) -> None:
    server.answers(reply(200, {"metadata": {"resourceVersion": "1"}, "items": []}))
    await client.list(CONFIG_MAP)
    assert server.seen[0].path == "/api/v1/configmaps"
