"""Attacks on the webhook: by strangers, by those who recorded a request, and by CI with a token of its own."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
import yaml

from kardinal.kube import Invalid
from kardinal.objects import SECRET
from kardinal.promotion.kinds import BUNDLE
from kardinal_controller.program import ControlPlane
from tests.http.conftest import start_api
from tests.support.identities import ACCOUNTS, RESOURCES
from tests.support.names import POLICIES, STAGING, TEAM, of_run
from tests.support.objects import bundle, gate, pipeline
from tests.support.programs import start_controller
from tests.support.webhook import Ci, body_of, webhook_secret
from tests.support.world import World

CLUSTER_ROLE_BINDING = RESOURCES["ClusterRoleBinding"]
ANSWER_LIMIT = 16 * 1024
EXAMPLE_GATES = list(yaml.safe_load_all((Path(__file__).parents[2] / "examples" / "gates.yaml").read_text()))
REPOSITORY = "https://git.example.com/acme/gitops.git"

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
async def controller(world: World) -> ControlPlane:
    """Return a control plane without an agent: nothing here comes as far as Git."""
    await world.apply(pipeline(REPOSITORY, provider="git"))
    await world.client.create(SECRET, webhook_secret())
    return await start_controller(world, standalone=False)


@pytest.fixture
async def ci(world: World, controller: ControlPlane) -> AsyncIterator[Ci]:
    async with aiohttp.ClientSession() as session:
        yield Ci(controller.api_url, session, world.clock)


def secret_reads(world: World) -> int:
    return world.audit.count(verbs={"get"}, resource="secrets", user=world.user("controller"))


async def bundles(world: World) -> list[str]:
    return sorted(found["metadata"]["name"] for found in await world.objects(BUNDLE))


# Strangers.


async def test_a_stranger_with_a_megabyte_of_misspelt_fields_is_refused_unread(world: World, ci: Ci) -> None:
    """Send misspelt fields, and hundreds of thousands of lists."""
    misspelt = {f"piplines{index}": "x" for index in range(48_000)}
    raw = orjson.dumps({"namespace": TEAM, **misspelt})
    assert 900_000 < len(raw) < 1024 * 1024
    before = time.process_time()
    answer = await ci.post(raw, token="wrong")
    spent = time.process_time() - before
    assert answer.status == 401
    assert answer.size <= ANSWER_LIMIT
    assert spent < 1.0, f"{spent:.2f} s of CPU for a stranger"
    answer = await ci.post(orjson.dumps({"namespace": TEAM, "padding": [[]] * 340_000}), token="wrong")
    assert answer.status == 401
    assert "/api/v1/namespaces/" in answer.body["detail"]
    assert await bundles(world) == []


async def test_strangers_cost_few_reads_of_secrets(world: World, ci: Ci) -> None:
    """Knock often at one namespace, and once at each of many."""
    assert (await ci.post(body_of(), token="wrong")).status == 401
    before = secret_reads(world)
    for _ in range(25):
        assert (await ci.post(body_of(), token="wrong")).status in (401, 429)
    assert secret_reads(world) - before <= 5
    before = secret_reads(world)
    for index in range(150):
        answer = await ci.post({**body_of(), "namespace": of_run(f"guess-{index}")}, token="wrong")
        assert answer.status in (401, 429)
    assert secret_reads(world) - before <= 75


async def test_failed_attempts_are_limited_and_a_right_token_never_is(world: World, ci: Ci) -> None:
    answers = [await ci.post(body_of(), token="wrong") for _ in range(60)]
    assert answers[0].status == 401
    assert answers[-1].status == 429
    assert int(answers[-1].headers["Retry-After"]) >= 1
    assert (await ci.post(body_of())).status == 201
    assert (await ci.post(body_of(), key="wrong")).status == 401


CREDENTIALS = {
    "token": {"Authorization": "Bearer tökén"},
    "signature": {"X-Kardinal-Signature-256": "sha256=ñ"},
    "token of no encoding": {"Authorization": "Bearer \udcff\udcfe"},
    "superscript time": {"X-Kardinal-Timestamp": "²"},
    "time of 400 digits": {"X-Kardinal-Timestamp": "9" * 400},
    "negative time": {"X-Kardinal-Timestamp": "-1"},
}


async def test_credentials_that_are_not_ascii_or_numbers_are_401(ci: Ci) -> None:
    delivery = ci.signed(body_of())
    statuses = {}
    for name, headers in CREDENTIALS.items():
        raw = {key: text.encode("utf-8", "surrogateescape") for key, text in (delivery.headers | headers).items()}
        lines = [key.encode() + b": " + text for key, text in raw.items()]
        statuses[name] = await exchange(ci.url, delivery.path, lines, delivery.body)
    assert statuses == dict.fromkeys(CREDENTIALS, 401)


async def exchange(url: str, path: str, headers: list[bytes], body: bytes) -> int:
    """Return the status for a request whose headers are sent byte by byte as they are."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = [f"POST {path} HTTP/1.1".encode(), b"Host: kardinal", b"Connection: close"]
    lines = [*head, *headers, f"Content-Length: {len(body)}".encode(), b"", body]
    writer.write(b"\r\n".join(lines))
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return int(answer.split(b" ", 2)[1])


# Recorded requests.


async def test_a_recorded_request_makes_no_second_bundle(world: World, ci: Ci) -> None:
    """Send it as it was, under another Idempotency-Key, and without its own."""
    recorded = ci.signed(body_of(), idempotency_key="run-7")
    assert (await ci.send(recorded)).status == 201
    assert (await ci.send(recorded.under("run-8"))).status == 401
    assert (await ci.send(recorded.without("Idempotency-Key"))).status == 401
    assert len(await bundles(world)) == 1
    recorded = ci.signed(body_of(tag="1.2.4"))
    first = await ci.send(recorded)
    second = await ci.send(recorded)
    assert (first.status, first.body) == (second.status, second.body)
    assert (await ci.send(recorded.under("mine"))).status == 401
    assert len(await bundles(world)) == 2


@pytest.mark.virtual_time("minutes later")
async def test_a_request_is_accepted_within_minutes_of_its_signature_only(world: World, ci: Ci) -> None:
    """Send one that was signed long ago, one that will be, and one without a time."""
    for recorded in (*(ci.signed(body_of(), age=minutes * 60) for minutes in (6, -6)), ci.unstamped(body_of())):
        answer = await ci.send(recorded)
        assert answer.status == 401
        assert "X-Kardinal-Timestamp" in answer.body["detail"]
    assert await bundles(world) == []


async def test_a_recorded_request_does_not_bring_a_deleted_bundle_back(world: World, ci: Ci) -> None:
    recorded = ci.signed(body_of(), idempotency_key="run-7")
    first = await ci.send(recorded)
    await world.delete(BUNDLE, first.body["name"])
    await world.until(lambda: is_gone(world, first.body["name"]))
    again = await ci.send(recorded)
    assert (first.status, first.body) == (again.status, again.body)
    assert await bundles(world) == []


async def is_gone(world: World, name: str) -> bool:
    return await world.find(BUNDLE, name) is None


async def test_an_unstamped_request_counts_once_whatever_key_is_sent_with_it(world: World) -> None:
    await world.apply(pipeline(REPOSITORY, provider="git"))
    await world.client.create(SECRET, webhook_secret(allowUnstamped="true"))
    controller = await start_controller(world, standalone=False)
    async with aiohttp.ClientSession() as session:
        ci = Ci(controller.api_url, session, world.clock)
        recorded = ci.unstamped(body_of())
        names = {(await ci.send(recorded.under(key))).body["name"] for key in ("1", "2", "3")}
        names.add((await ci.send(recorded)).body["name"])
    assert len(names) == 1
    await world.settle()
    [event] = await world.events("UnstampedSignature")
    assert event["type"] == "Warning"
    assert event["regarding"]["name"] in names


async def test_two_keys_whose_short_hashes_are_one_make_two_bundles(world: World, ci: Ci) -> None:
    first, second = keys_that_collide("my-app")
    names = {(await ci.post(body_of(), idempotency_key=key)).body["name"] for key in (first, second)}
    assert len(names) == 2


def keys_that_collide(pipeline: str) -> tuple[str, str]:
    """Return two keys that 32 bits of a hash do not tell apart."""
    seen: dict[str, str] = {}
    for index in range(1_000_000):
        key = f"run-{index}"
        digest = hashlib.sha256(f"{pipeline}/{key}".encode()).hexdigest()[:8]
        if digest in seen:
            return seen[digest], key
        seen[digest] = key
    raise AssertionError("no collision")


async def test_a_bundle_that_was_put_under_the_name_of_a_delivery_is_not_taken_for_it(world: World, ci: Ci) -> None:
    first = await ci.post(body_of(), idempotency_key="run-7")
    made = await world.get(BUNDLE, first.body["name"])
    await world.delete(BUNDLE, first.body["name"])
    await world.until(lambda: is_gone(world, first.body["name"]))
    other = bundle(first.body["name"], tag="6.6.6")
    other["metadata"]["annotations"] = made["metadata"]["annotations"]
    await world.apply(other)
    answer = await ci.post(body_of(), idempotency_key="run-7", age=60)
    assert answer.status == 409


# CI, with a token.


RESERVED_LABELS = (
    "kardinal.io/bundle",
    "kardinal.io/environment",
    "kardinal.io/gate",
    "kardinal.io/shard",
    "kardinal.io/scope",
    "kardinal.io/applies-to",
    "kardinal.io/type",
    "kardinal.io/source",
    "kardinal.io/attestation",
    "internal.kro.run/apply-order",
)


async def test_a_label_that_decides_something_is_refused(world: World, ci: Ci) -> None:
    for label in RESERVED_LABELS:
        answer = await ci.post(body_of(labels={label: "x", "hotfix": "true"}))
        assert answer.status == 422
        assert [error["field"] for error in answer.body["errors"]] == [f"labels[{label}]"]
    assert await bundles(world) == []


async def test_a_label_for_another_pipeline_is_refused(world: World, ci: Ci) -> None:
    assert (await ci.post(body_of(labels={"kardinal.io/pipeline": "other"}))).status == 422
    assert (await ci.post(body_of(labels={"kardinal.io/pipeline": "my-app"}))).status == 201


async def test_a_flood_of_unfit_names_costs_little_and_is_answered_shortly(ci: Ci, world: World) -> None:
    names = [f"{letter}{index}" * 12 for letter in "abcdefgh" for index in range(8)]
    environments = [f"{name}x{index}"[:62] for index, name in enumerate(names)]
    await world.apply(pipeline(REPOSITORY, name="wide", provider="git", environments=environments))
    await world.settle()
    skip = [f"{name}y" for name in environments]
    before = time.process_time()
    answer = await ci.post(body_of(pipeline="wide", intent={"skip": skip}))
    spent = time.process_time() - before
    assert answer.status == 422
    assert answer.size <= ANSWER_LIMIT
    assert len(answer.body["errors"]) <= 50
    assert spent < 0.5, f"{spent:.2f} s of CPU"


MISTAKES: dict[str, dict[str, Any]] = {
    "labels": {"labels": {f"key-{index}": "not a label!" for index in range(4_500)}},
    "images": {"artifacts": {"images": [{"refrence": "x"}] * 4_000}},
    "skips": {"intent": {"skip": ["NOT A NAME"] * 9_000}},
    "a long field": {"x" * 900_000: "x"},
    "control characters": {f"field-{index}-\u0001": None for index in range(9_000)},
}


async def test_a_body_full_of_mistakes_gets_fifty_of_them_in_sixteen_kibibytes(ci: Ci) -> None:
    for name, fields in MISTAKES.items():
        before = time.process_time()
        answer = await ci.post(body_of() | fields)
        spent = time.process_time() - before
        assert (name, answer.status) == (name, 422)
        assert answer.size <= ANSWER_LIMIT
        assert 1 <= len(answer.body["errors"]) <= 50
        assert spent < 1.0, f"{name}: {spent:.2f} s of CPU"


async def test_a_build_time_before_time_began_is_a_mistake_of_the_body(world: World, ci: Ci) -> None:
    answer = await ci.post(body_of(provenance={"buildTimestamp": "0001-01-01T00:00:00+23:59"}))
    assert answer.status == 422
    assert "provenance.buildTimestamp" in answer.body["detail"]


IMPOSSIBLE = {
    "zero": "0000-01-01T00:00:00Z",
    "first": "0001-01-01T00:00:00+23:59",
    "last": "9999-12-31T23:59:59-23:59",
}


async def test_bundles_of_an_impossible_build_time_do_not_stop_their_siblings(
    world: World, controller: ControlPlane
) -> None:
    for name, moment in IMPOSSIBLE.items():
        with contextlib.suppress(Invalid):
            await world.apply(bundle(f"poisoned-{name}", provenance={"buildTimestamp": moment}))
    await world.settle()
    await world.apply(bundle("sound", tag="1.2.0"))
    await world.wait_for(BUNDLE, "sound", lambda obj: obj.get("status", {}).get("phase") == "Promoting")


# Who may skip.


async def test_a_label_from_ci_does_not_open_the_skip_permission_of_the_examples(world: World, ci: Ci) -> None:
    await apply_example(world)
    made = await ci.post(body_of(labels={"hotfix": "true"}, intent={"skip": [STAGING]}))
    assert made.status == 201
    denied = await world.wait_for(BUNDLE, made.body["name"], lambda obj: obj.get("status", {}).get("phase") is not None)
    assert denied["status"]["phase"] == "SkipDenied"


async def apply_example(world: World) -> None:
    """Apply the skip permission of the examples, and a gate before the same environment."""
    [permission] = [one for one in EXAMPLE_GATES if one["metadata"]["name"].endswith("may-skip-staging")]
    spec = permission["spec"]
    labels = {"kardinal.io/type": "skip-permission"}
    await world.apply(
        gate("soak", "true", applies_to=STAGING, namespace=POLICIES),
        gate("hotfix", spec["expression"], applies_to=STAGING, namespace=POLICIES, labels=labels),
    )
    await world.settle()


async def test_a_recorded_request_does_not_use_up_the_rate_of_its_pipeline(ci: Ci) -> None:
    recorded = ci.signed(body_of())
    for _ in range(110):
        assert (await ci.send(recorded)).status == 201
    assert (await ci.post(body_of(), age=60)).status == 201


async def test_bodies_that_never_end_keep_no_one_else_waiting(ci: Ci) -> None:
    host, _, port = ci.url.removeprefix("http://").rpartition(":")
    head = b"\r\n".join(
        [
            b"POST /api/v1/bundles HTTP/1.1",
            b"Host: kardinal",
            b"Authorization: Bearer wrong",
            b"X-Kardinal-Signature-256: sha256=00",
            b"Content-Length: 1000000",
            b"",
            b'{"padding": "',
        ]
    )
    connections = [await asyncio.open_connection(host, int(port)) for _ in range(12)]
    for _, writer in connections:
        writer.write(head)
        await writer.drain()
    large = {**body_of(), "provenance": {"author": "x" * 100}, "artifacts": body_of()["artifacts"]}
    padded = orjson.dumps(large, option=orjson.OPT_INDENT_2).replace(b"\n", b"\n" + b" " * 8192)
    assert len(padded) > 64 * 1024
    assert (await ci.post(body_of())).status == 201
    assert (await ci.post(padded, path=f"/api/v1/namespaces/{TEAM}/bundles")).status == 201
    for _, writer in connections:
        writer.close()
        await writer.wait_closed()


async def test_a_secret_that_may_not_be_read_costs_no_request_for_each_stranger(world: World) -> None:
    program = await start_api(world)
    for binding in await world.objects(CLUSTER_ROLE_BINDING):
        if binding["roleRef"]["name"] == f"{ACCOUNTS['controller']}-secrets":
            await world.delete(CLUSTER_ROLE_BINDING, binding["metadata"]["name"])
    async with aiohttp.ClientSession() as session:
        ci = Ci(program.api.url, session, world.clock)
        before = secret_reads(world)
        for _ in range(20):
            assert (await ci.post(body_of(), token="wrong")).status == 401
        assert secret_reads(world) - before <= 5
