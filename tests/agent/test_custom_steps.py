"""A custom step asks an HTTP endpoint whether the promotion may go on, and takes its answer over."""

from __future__ import annotations

import base64
import hmac
from datetime import timedelta
from typing import Any

import pytest

from kardinal.objects import JsonObject
from kardinal.objects.secret_purposes import ANNOTATION_HOSTS, CREDENTIALS_STEP, LABEL_CREDENTIALS
from kardinal.promotion.api.signature import signature, signed_text
from tests.agent.promotion_steps import (
    BUNDLE_NAME,
    create,
    deploy,
    freeze,
    freeze_gate,
    promotion_step,
    reached,
    start_agent,
    state,
)
from tests.support.endpoint import Endpoint, answering, serving_endpoint
from tests.support.names import DEV, TEAM
from tests.support.repository import IMAGE, GitRepository
from tests.support.world import KINDS, World

BEFORE = ("git-clone", "kustomize-set-image")
AFTER = ("git-commit", "git-push", "health-check")
LATER = timedelta(hours=1)


def asking(repository: GitRepository, endpoint: Endpoint | str, config: JsonObject | None = None, **step: Any) -> Any:
    """Return a PromotionStep that asks an endpoint before anything is committed."""
    url = endpoint if isinstance(endpoint, str) else endpoint.url
    tests = {"uses": "run-tests", "config": {"url": url, **(config or {})}, **step}
    return promotion_step(repository, steps=[*({"uses": name} for name in BEFORE), tests, *map(_uses, AFTER)])


def _uses(name: str) -> JsonObject:
    return {"uses": name}


async def start(world: World, endpoint: Endpoint) -> Any:
    return await start_agent(world, allow_step_hosts=(endpoint.host,))


async def test_an_endpoint_that_says_yes_gets_the_promotion_and_leaves_outputs(
    world: World, repository: GitRepository
) -> None:
    yes = answering(body={"success": True, "message": "12 tests passed", "outputs": {"report": "r-1", "count": 12}})
    async with serving_endpoint(yes) as endpoint:
        await start(world, endpoint)
        await deploy(world)
        await create(world, asking(repository, endpoint, {"suite": "smoke", "headers": {"X-Team": "red"}}))
        status = await reached(world, "Verified")
    (heard,) = endpoint.heard
    assert heard.method == "POST"
    assert heard.headers["x-team"] == "red"
    assert "authorization" not in heard.headers
    asked = heard.json
    assert (asked["pipeline"], asked["environment"]) == ("my-app", DEV)
    assert asked["bundle"]["artifacts"]["images"][0]["reference"] == f"{IMAGE}:1.1.0"
    assert asked["config"] == {"url": endpoint.url, "suite": "smoke", "headers": {"X-Team": "red"}}
    context = asked["context"]
    assert (context["step"], context["namespace"], context["attempt"]) == ("run-tests", TEAM, 1)
    assert context["promotion"] == f"{BUNDLE_NAME}-{DEV}"
    assert heard.headers["idempotency-key"] == f"{context['uid']}/run-tests"
    assert context["outputs"]["git-clone"]["commit"]
    assert status["outputs"]["run-tests"] == {"report": "r-1", "count": 12}
    assert status["steps"][2]["message"] == "12 tests passed"


async def test_an_endpoint_that_says_no_ends_the_promotion_with_its_words(
    world: World, repository: GitRepository
) -> None:
    no = answering(body={"success": False, "message": "3 tests\x1b[31m failed\n\u202e"})
    async with serving_endpoint(no) as endpoint:
        await start(world, endpoint)
        await create(world, asking(repository, endpoint))
        status = await reached(world, "Failed")
    assert status["message"] == "run-tests: 3 tests[31m failed"
    assert status["conditions"][0]["reason"] == "StepRefused"
    assert repository.promotions(DEV) == []
    assert len(endpoint.heard) == 1


@pytest.mark.virtual_time("minutes between requests")
async def test_failures_that_may_pass_are_tried_again_with_one_key(world: World, repository: GitRepository) -> None:
    flaky = (answering(503), answering(429, Retry_After="120"), answering())
    async with serving_endpoint(*flaky) as endpoint:
        await start(world, endpoint)
        await deploy(world)
        await create(world, asking(repository, endpoint))
        await world.until(lambda: len(endpoint.heard) == 2, within=timedelta(seconds=5))
        await world.live(timedelta(seconds=100))
        assert len(endpoint.heard) == 2
        await reached(world, "Verified")
    assert len({heard.headers["idempotency-key"] for heard in endpoint.heard}) == 1
    assert [heard.json["context"]["attempt"] for heard in endpoint.heard] == [1, 2, 3]


@pytest.mark.virtual_time("minutes between requests")
async def test_attempts_are_counted(world: World, repository: GitRepository) -> None:
    async with serving_endpoint(answering(502, {"message": "bad gateway"})) as endpoint:
        await start(world, endpoint)
        await create(world, asking(repository, endpoint, retry={"attempts": 3}))
        status = await reached(world, "Failed")
    assert len(endpoint.heard) == 3
    assert status["message"] == f"run-tests: {endpoint.host} answers 502: bad gateway (attempt 3 of 3)"


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (404, {"message": "no such suite"}, "answers 404: no such suite"),
        (302, None, "redirects are not followed"),
        (200, "{}", 'without {"success": true} or {"success": false}'),
        (200, "no json", 'without {"success": true} or {"success": false}'),
        (200, {"success": "true"}, 'without {"success": true} or {"success": false}'),
        (200, {"success": True, "outputs": [1]}, "outputs that are no object"),
        (200, {"success": True, "outputs": {"log": "x" * 9000}}, "a step may leave 8,192"),
        (202, None, "202 without a Location"),
    ],
)
async def test_an_answer_that_cannot_be_used_ends_the_promotion(
    world: World, repository: GitRepository, status: int, body: Any, says: str
) -> None:
    async with serving_endpoint(answering(status, body)) as endpoint:
        await start(world, endpoint)
        await create(world, asking(repository, endpoint))
        ended = await reached(world, "Failed")
    assert says in ended["message"]
    assert len(endpoint.heard) == 1
    assert repository.promotions(DEV) == []


@pytest.mark.virtual_time("minutes between requests")
async def test_work_that_takes_long_is_asked_for_where_it_is_done_after_a_restart_too(
    world: World, repository: GitRepository
) -> None:
    accepted = answering(202, {"message": "queued"}, Location="/jobs/7?x=1", Retry_After="30")
    async with serving_endpoint(accepted, answering(202, {"message": "half"}), answering()) as endpoint:
        agent = await start(world, endpoint)
        await deploy(world)
        await create(world, asking(repository, endpoint, {"timeout": "1h"}))
        await world.until(lambda: endpoint.heard)
        await world.settle()
        status = await state(world)
        assert status["message"] == f"{endpoint.host} works on it: queued"
        assert status["steps"][2]["location"] == f"http://{endpoint.host}/jobs/7?x=1"
        await world.stop(agent)
        await start(world, endpoint)
        await reached(world, "Verified")
    assert [(heard.method, heard.path) for heard in endpoint.heard] == [
        ("POST", "/validate"),
        ("GET", "/jobs/7?x=1"),
        ("GET", "/jobs/7?x=1"),
    ]


@pytest.mark.virtual_time("minutes between requests")
async def test_work_that_never_ends_has_a_time_limit_that_a_restart_does_not_renew(
    world: World, repository: GitRepository
) -> None:
    async with serving_endpoint(answering(202, {}, Location="/jobs/7")) as endpoint:
        agent = await start(world, endpoint)
        await create(world, asking(repository, endpoint, {"timeout": "2m"}))
        await world.until(lambda: len(endpoint.heard) == 2, within=LATER)
        deadline = (await state(world))["steps"][2]["deadline"]
        await world.stop(agent)
        await start(world, endpoint)
        status = await reached(world, "Failed", within=timedelta(minutes=3))
    assert status["steps"][2]["state"] == "Failed"
    assert status["steps"][2]["deadline"] == deadline
    assert status["message"] == f"run-tests: not done within 2m: {endpoint.host} works on it"
    assert status["conditions"][0]["reason"] == "StepTimeout"
    assert len(endpoint.heard) <= 15


async def test_a_freeze_keeps_an_endpoint_from_being_asked(world: World, repository: GitRepository) -> None:
    async with serving_endpoint() as endpoint:
        await start(world, endpoint)
        await deploy(world)
        await freeze(world)
        await create(world, asking(repository, endpoint))
        await world.settle()
        assert "held by a freeze" in (await state(world))["message"]
        assert endpoint.heard == []
        frozen = freeze_gate()
        await world.delete(KINDS[frozen["apiVersion"], frozen["kind"]], frozen["metadata"]["name"])
        await reached(world, "Verified")
    assert len(endpoint.heard) == 1


async def test_a_request_is_signed_with_the_key_and_the_token_of_its_secret(
    world: World, repository: GitRepository
) -> None:
    async with serving_endpoint() as endpoint:
        await start(world, endpoint)
        await deploy(world)
        await world.apply(secret(endpoint.host, token="t0ken-of-tests", hmacKey="k3y-of-tests"))
        await create(world, asking(repository, endpoint, {"secretRef": {"name": "tests"}}))
        await reached(world, "Verified")
    (heard,) = endpoint.heard
    assert heard.headers["authorization"] == "Bearer t0ken-of-tests"
    stamp = heard.headers["x-kardinal-timestamp"]
    key = heard.headers["idempotency-key"]
    text = signed_text(heard.body, timestamp=stamp.encode(), key=key.encode())
    expected = f"sha256={signature(b'k3y-of-tests', text)}"
    assert hmac.compare_digest(heard.headers["x-kardinal-signature-256"], expected)


def secret(hosts: str, *, label: str = CREDENTIALS_STEP, **data: str) -> JsonObject:
    """Return a Secret for the endpoints of custom steps."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "tests",
            "namespace": TEAM,
            "labels": {LABEL_CREDENTIALS: label},
            "annotations": {ANNOTATION_HOSTS: hosts},
        },
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }
