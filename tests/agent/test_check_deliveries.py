"""A check of the host that finishes wakes the promotion that waits for it, so that it merges right after the check.

kardinal merges by itself and leaves the auto-merge of hosts alone, as docs/design/decisions.md says.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from datetime import timedelta

import aiohttp
import orjson
import pytest

from kardinal.objects import JsonObject
from kardinal.objects.secret_purposes import CREDENTIALS_WEBHOOK, LABEL_CREDENTIALS
from kardinal.promotion.api.names import branch_name
from kardinal.scm import PROVIDERS, Delivery
from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import BUNDLE_NAME, create, deploy, reached, start_agent, state
from tests.agent.sites import Site
from tests.http.conftest import session, start_api
from tests.support.names import DEV, TEAM
from tests.support.objects import pipeline
from tests.support.secret_values import secret_value
from tests.support.world import World

__all__ = ["session"]

BRANCH = branch_name(TEAM, BUNDLE_NAME, DEV)
COMMIT = "c" * 40
OF_WEBHOOK = secret_value("of-the-webhook")

Payload = Callable[[str], JsonObject]


def github_status(commit: str) -> JsonObject:
    return {"sha": commit, "state": "success", "context": "ci", "branches": [{"name": BRANCH}]}


def check_suite(commit: str) -> JsonObject:
    suite = {"head_branch": BRANCH, "head_sha": commit, "pull_requests": [{"number": 1}]}
    return {"action": "completed", "check_suite": suite}


def check_run(commit: str) -> JsonObject:
    run = {"head_sha": commit, "check_suite": {"head_branch": BRANCH}, "pull_requests": []}
    return {"action": "completed", "check_run": run}


def workflow_run(commit: str) -> JsonObject:
    return {"action": "completed", "workflow_run": {"head_branch": BRANCH, "head_sha": commit}}


def pipeline_of_branch(commit: str) -> JsonObject:
    attributes = {"ref": BRANCH, "sha": commit, "source": "push", "status": "success"}
    return {"object_kind": "pipeline", "object_attributes": attributes, "merge_request": None}


def pipeline_of_merge_request(commit: str) -> JsonObject:
    attributes = {"ref": "refs/merge-requests/1/head", "sha": commit, "status": "success"}
    request = {"iid": 1, "source_branch": BRANCH}
    return {"object_kind": "pipeline", "object_attributes": attributes, "merge_request": request}


def gitea_status(commit: str) -> JsonObject:
    return {"sha": commit, "state": "success", "context": "ci"}


EVERY_EVENT = pytest.mark.parametrize(
    ("host", "payload"),
    [
        ("github", github_status),
        ("github", check_suite),
        ("github", check_run),
        ("github", workflow_run),
        ("gitlab", pipeline_of_branch),
        ("gitlab", pipeline_of_merge_request),
        ("gitea", gitea_status),
        ("gitea", workflow_run),
    ],
)
AT_EVERY_HOST = [
    pytest.param("github", check_suite, marks=pytest.mark.every_host),
    pytest.param("gitlab", pipeline_of_branch, marks=pytest.mark.every_host),
    ("gitea", gitea_status),
]


def elsewhere(payload: Payload) -> JsonObject:
    """Return the same event of another branch, commit and pull request."""
    text = orjson.dumps(payload("f" * 40)).replace(BRANCH.encode(), b"main").replace(b'"iid":1', b'"iid":2')
    found: JsonObject = orjson.loads(text.replace(b'"number":1', b'"number":2'))
    return found


def signed(host: str, payload: JsonObject) -> tuple[dict[str, str], bytes]:
    body = orjson.dumps(payload)
    signature = hmac.new(OF_WEBHOOK.encode(), body, hashlib.sha256).hexdigest()
    headers = {
        "gitea": {"X-Gitea-Signature": signature},
        "github": {"X-Hub-Signature-256": f"sha256={signature}"},
        "gitlab": {"X-Gitlab-Token": OF_WEBHOOK},
    }[host]
    return headers, body


def read(host: str, payload: JsonObject) -> Delivery:
    parse = PROVIDERS[host].parse_webhook
    assert parse is not None
    return parse(*signed(host, payload), OF_WEBHOOK.encode())


@EVERY_EVENT
def test_a_check_that_finishes_is_of_its_branch_or_its_commit(host: str, payload: Payload) -> None:
    assert {BRANCH, COMMIT} & set(read(host, payload(COMMIT)).checked)


@EVERY_EVENT
def test_a_check_of_the_base_or_of_others_is_not(host: str, payload: Payload) -> None:
    delivery = read(host, elsewhere(payload))
    assert {BRANCH, COMMIT}.isdisjoint({*delivery.checked, delivery.branch, delivery.commit})
    assert delivery.number != 1


def webhook_secret() -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "webhook", "namespace": TEAM, "labels": {LABEL_CREDENTIALS: CREDENTIALS_WEBHOOK}},
        "data": {"webhookSecret": base64.b64encode(OF_WEBHOOK.encode()).decode()},
    }


async def deliver(session: aiohttp.ClientSession, url: str, host: str, payload: JsonObject) -> None:
    headers, body = signed(host, payload)
    async with session.post(f"{url}/webhooks/{host}/{TEAM}/my-app", data=body, headers=headers) as answer:
        assert answer.status == 202


async def waits_for_a_check(world: World, site: Site) -> str:
    """Have a promotion that kardinal merges wait for a check; return the address of the webhook's server."""
    site.require_check()
    way = pipeline(site.url, provider=site.provider)
    way["spec"]["git"]["webhookSecretRef"] = {"name": "webhook"}
    await world.apply(way, webhook_secret(), git_secret(site))
    program = await start_api(world)
    await start_agent(world)
    await deploy(world)
    await create(world, hosted_step(site, approval="auto", pr=True))
    await reached(world, "WaitingForMerge")
    await world.live(timedelta(minutes=1))
    return program.api.url


@pytest.mark.virtual_time("nothing but a delivery may wake")
@pytest.mark.parametrize(("site", "payload"), AT_EVERY_HOST, indirect=["site"])
async def test_finished_check_has_its_promotion_merged_at_once(
    world: World, site: Site, session: aiohttp.ClientSession, payload: Payload
) -> None:
    url = await waits_for_a_check(world, site)
    assert (await state(world))["state"] == "WaitingForMerge"
    site.require_check(required=False)
    site.forget()
    await deliver(session, url, site.provider, elsewhere(payload))
    await world.settle()
    assert site.lines() == []
    assert site.proposals()[1].state == "open"
    await deliver(session, url, site.provider, payload(site.repository.head(BRANCH)))
    await world.settle()
    assert site.proposals()[1].state == "merged"
    await reached(world, "Verified")
