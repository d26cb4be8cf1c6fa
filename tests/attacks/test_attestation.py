"""Attacks on attestations: what a token may skip is believed of the Bundle that was posted with it, and of no other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import aiohttp
import orjson
import pytest
import yaml

from kardinal.api import BUNDLE, POLICY_GATE, Bundle
from kardinal.api.names import ANNOTATION_ATTESTATION
from kardinal.objects import SECRET, JsonObject
from kardinal.policy.attestation import Scope
from kardinal.runtime.errors import RuntimeFailure
from kardinal_controller.attestations import Attestations
from kardinal_controller.program import Controller
from tests.support.identities import SYSTEM_NAMESPACE
from tests.support.names import DEV, POLICIES, PROD, STAGING, TEAM
from tests.support.objects import bundle, gate, pipeline
from tests.support.programs import start_controller
from tests.support.secret_values import secret_value
from tests.support.webhook import Ci, body_of, token_entry, webhook_secret
from tests.support.world import World

REPOSITORY = "https://git.example.com/acme/gitops.git"
HOTFIX = "hotfix-token-of-the-test"
HOTFIX_KEY = secret_value("hotfix-key")
PERMISSION = {"kardinal.io/type": "skip-permission"}


@pytest.fixture
async def controller(world: World) -> Controller:
    """Return a control plane with the skip permission of the examples and a gate that protects two environments."""
    tokens = [
        token_entry("hotfix", token=HOTFIX, key=HOTFIX_KEY, maySkip=[STAGING]),
        token_entry("plain", token="plain-token", key="plain-key"),
    ]
    await world.apply(
        pipeline(REPOSITORY, provider="git"),
        gate("soak", "true", applies_to=None, namespace=POLICIES, appliesTo=[DEV, STAGING]),
        gate(
            "hotfix",
            "environment.name in bundle.attested.maySkip",
            applies_to=None,
            namespace=POLICIES,
            labels=PERMISSION,
        ),
    )
    await world.client.create(SECRET, webhook_secret(tokens_yaml=yaml.safe_dump(tokens)))
    return await start_controller(world, standalone=False)


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
def hotfix(world: World, controller: Controller, session: aiohttp.ClientSession) -> Ci:
    return Ci(controller.api_url, session, world.clock, token=HOTFIX, key=HOTFIX_KEY)


async def phase_of(world: World, name: str) -> str:
    """Return the phase that a Bundle gets once it has been translated or refused."""
    found = await world.wait_for(
        BUNDLE, name, lambda obj: obj.get("status", {}).get("phase") not in (None, "Available")
    )
    phase: str = found["status"]["phase"]
    return phase


async def posted(ci: Ci, **fields: Any) -> str:
    answer = await ci.post(body_of(intent={"skip": [STAGING]}, **fields))
    assert answer.status == 201, answer.body
    name: str = answer.body["name"]
    return name


def copy_of(made: JsonObject, name: str) -> JsonObject:
    """Return the manifest of a Bundle that is all that another one is, its annotations included."""
    metadata = made["metadata"]
    kept = {"labels": metadata["labels"], "annotations": metadata["annotations"], "namespace": TEAM}
    return {
        "apiVersion": made["apiVersion"],
        "kind": "Bundle",
        "metadata": {"name": name, **kept},
        "spec": made["spec"],
    }


async def test_a_token_that_may_skip_an_environment_skips_it(world: World, hotfix: Ci) -> None:
    assert await phase_of(world, await posted(hotfix)) == "Promoting"


async def test_a_token_that_may_not_skip_is_denied(
    world: World, controller: Controller, session: aiohttp.ClientSession
) -> None:
    plain = Ci(controller.api_url, session, world.clock, token="plain-token", key="plain-key")
    assert await phase_of(world, await posted(plain)) == "SkipDenied"
    unnamed = Ci(controller.api_url, session, world.clock)
    assert await phase_of(world, await posted(unnamed, tag="1.2.4")) == "SkipDenied"


async def test_a_token_may_skip_only_what_its_scope_names(world: World, hotfix: Ci) -> None:
    answer = await hotfix.post(body_of(intent={"skip": [DEV]}))
    assert await phase_of(world, answer.body["name"]) == "SkipDenied"


async def test_a_bundle_by_kubectl_is_not_attested(world: World, controller: Controller) -> None:
    await world.apply(bundle("by-hand", labels={"hotfix": "true"}, intent={"skip": [STAGING]}))
    assert await phase_of(world, "by-hand") == "SkipDenied"


async def test_an_attestation_copied_to_another_name_is_worth_nothing(world: World, hotfix: Ci) -> None:
    made = await world.get(BUNDLE, await posted(hotfix))
    await world.apply(copy_of(made, "copy"))
    assert await phase_of(world, "copy") == "SkipDenied"


@pytest.mark.parametrize(
    "change",
    [
        {"artifacts": {"images": [{"reference": "ghcr.io/acme/my-app:6.6.6"}]}},
        {"provenance": {"author": "mallory"}},
        {"intent": {"skip": [DEV, STAGING]}},
    ],
    ids=["artifacts", "provenance", "skip"],
)
async def test_an_attestation_does_not_survive_a_change_of_what_it_covers(
    world: World, hotfix: Ci, change: JsonObject
) -> None:
    name = await posted(hotfix)
    made = await world.get(BUNDLE, name)
    await remove(world, name)
    await world.apply({**copy_of(made, name), "spec": {**made["spec"], **change}})
    assert await phase_of(world, name) == "SkipDenied"


async def test_a_permission_by_token_is_not_for_a_skip_that_is_added_later(world: World, hotfix: Ci) -> None:
    await world.apply(
        gate("guard", "true", applies_to=PROD, namespace=POLICIES),
        gate("token", 'bundle.attested.token == "hotfix"', applies_to=PROD, namespace=POLICIES, labels=PERMISSION),
    )
    await world.settle()
    name = (await hotfix.post(body_of())).body["name"]
    made = await world.get(BUNDLE, name)
    await remove(world, name)
    await world.apply({**copy_of(made, name), "spec": {**made["spec"], "intent": {"skip": [PROD]}}})
    assert await phase_of(world, name) == "SkipDenied"
    permitted = await hotfix.post(body_of(intent={"skip": [PROD]}))
    assert await phase_of(world, permitted.body["name"]) == "Promoting"


async def test_an_attestation_is_for_the_pipeline_that_it_was_posted_to(world: World, hotfix: Ci) -> None:
    await world.apply(pipeline(f"{REPOSITORY}2", name="other", provider="git"))
    name = await posted(hotfix)
    made = await world.get(BUNDLE, name)
    await remove(world, name)
    moved = copy_of(made, name)
    moved["metadata"]["labels"] = {**moved["metadata"]["labels"], "kardinal.io/pipeline": "other"}
    await world.apply(moved)
    assert await phase_of(world, name) == "SkipDenied"


@pytest.mark.virtual_time("later than clocks differ")
async def test_a_bundle_that_is_made_again_later_is_not_attested(world: World, hotfix: Ci) -> None:
    name = await posted(hotfix)
    made = await world.get(BUNDLE, name)
    await remove(world, name)
    await world.live(timedelta(minutes=6))
    await world.apply(copy_of(made, name))
    assert await phase_of(world, name) == "SkipDenied"


async def test_a_scope_that_is_written_into_the_annotation_is_not_believed(world: World, hotfix: Ci) -> None:
    answer = await hotfix.post(body_of(intent={"skip": [DEV]}))
    name = answer.body["name"]
    assert await phase_of(world, name) == "SkipDenied"
    made = await world.get(BUNDLE, name)
    attested = orjson.loads(made["metadata"]["annotations"][ANNOTATION_ATTESTATION])
    forged = orjson.dumps({**attested, "maySkip": [DEV]}).decode()
    await world.client.patch(BUNDLE, name, TEAM, {"metadata": {"annotations": {ANNOTATION_ATTESTATION: forged}}})
    await world.settle()
    assert await phase_of(world, name) == "SkipDenied"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"token": 1}', '{"token":"a","maySkip":[1],"issued":1,"mac":"x"}', "9" * 20_000]
)
async def test_an_annotation_of_any_text_closes_and_stops_nothing(
    world: World, controller: Controller, text: str
) -> None:
    forged = bundle("forged", intent={"skip": [STAGING]})
    forged["metadata"]["annotations"] = {ANNOTATION_ATTESTATION: text}
    await world.apply(forged)
    assert await phase_of(world, "forged") == "SkipDenied"


async def test_a_gate_that_asks_for_a_token_says_why_it_is_closed(world: World, hotfix: Ci) -> None:
    await world.apply(gate("release", 'bundle.attested.token == "hotfix"', applies_to=DEV, namespace=POLICIES))
    await world.settle()
    await world.apply(bundle("by-hand"))
    closed = await world.wait_for(POLICY_GATE, f"by-hand-{DEV}-release", lambda obj: "ready" in obj.get("status", {}))
    assert closed["status"]["ready"] is False
    assert "not posted to the webhook" in closed["status"]["reason"]
    name = (await hotfix.post(body_of(tag="2.0.0"))).body["name"]
    await world.wait_for(POLICY_GATE, f"{name}-{DEV}-release", lambda obj: obj.get("status", {}).get("ready") is True)


async def test_the_key_is_made_once_and_shared(world: World, controller: Controller) -> None:
    first = await world.get(SECRET, "kardinal-attestation", SYSTEM_NAMESPACE)
    await world.stop(controller)
    again = await start_controller(world, standalone=False)
    assert await world.get(SECRET, "kardinal-attestation", SYSTEM_NAMESPACE) == first
    await world.stop(again)


async def test_replicas_that_start_at_once_share_one_key(world: World) -> None:
    bundle_ = Bundle.model_validate(bundle("shared") | {"metadata": {"name": "shared", "namespace": TEAM}})
    client = await world.connect("controller")
    replicas = [Attestations(client, namespace=SYSTEM_NAMESPACE) for _ in range(4)]
    await asyncio.gather(*(replica.start() for replica in replicas))
    scope = Scope("hotfix", ())
    assert len({replica.attest(bundle_, scope, now=world.clock.now()) for replica in replicas}) == 1


async def test_a_key_that_is_too_short_is_refused_with_the_remedy(world: World) -> None:
    weak = {"metadata": {"name": "kardinal-attestation", "namespace": SYSTEM_NAMESPACE}, "data": {"key": "aGk="}}
    await world.client.create(SECRET, {"apiVersion": "v1", "kind": "Secret", **weak})
    with pytest.raises(RuntimeFailure, match="delete the Secret"):
        await Attestations(world.client, namespace=SYSTEM_NAMESPACE).start()


async def test_a_template_that_believes_a_label_is_warned_about(world: World, controller: Controller) -> None:
    believing = gate("label", 'bundle.labels.hotfix == "true"', applies_to=PROD, namespace=POLICIES, labels=PERMISSION)
    await world.apply(believing)
    warned = await world.wait_for(
        POLICY_GATE, "label", lambda obj: "conditions" in obj.get("status", {}), namespace=POLICIES
    )
    [valid] = [one for one in warned["status"]["conditions"] if one["type"] == "Valid"]
    assert valid["reason"] == "Ineffective"
    assert "bundle.attested.maySkip" in valid["message"]


async def remove(world: World, name: str) -> None:
    """Delete a Bundle and wait until its name is free."""
    await world.delete(BUNDLE, name)

    async def is_gone() -> bool:
        return await world.find(BUNDLE, name) is None

    await world.until(is_gone)
