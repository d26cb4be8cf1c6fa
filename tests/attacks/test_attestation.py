"""Attacks on attestations: what a token may skip is believed of the Bundle that was posted with it, and of no other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import orjson
import pytest
import yaml

from kardinal.objects import SECRET, JsonObject
from kardinal.objects.conditions import format_time
from kardinal.promotion.api import Bundle
from kardinal.promotion.api.names import ANNOTATION_ATTESTATION
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE
from kardinal.promotion.policy.attestation import Attestor, TokenScope
from kardinal.runtime.errors import RuntimeFailure
from kardinal_controller.attestations import Attestations
from kardinal_controller.program import ControlPlane
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
async def controller(world: World) -> ControlPlane:
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
def hotfix(world: World, controller: ControlPlane, session: aiohttp.ClientSession) -> Ci:
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


async def test_a_skip_needs_a_token_whose_scope_names_the_environment(
    world: World, controller: ControlPlane, session: aiohttp.ClientSession, hotfix: Ci
) -> None:
    """Skip by other tokens, by kubectl, by an annotation of any text, and by an attestation that was copied."""
    plain = Ci(controller.api_url, session, world.clock, token="plain-token", key="plain-key")
    assert await phase_of(world, await posted(plain)) == "SkipDenied"
    unnamed = Ci(controller.api_url, session, world.clock)
    assert await phase_of(world, await posted(unnamed, tag="1.2.4")) == "SkipDenied"
    answer = await hotfix.post(body_of(intent={"skip": [DEV]}))
    assert await phase_of(world, answer.body["name"]) == "SkipDenied"

    by_hand = bundle("by-hand", labels={"hotfix": "true"}, intent={"skip": [STAGING]})
    forged = bundle("forged", intent={"skip": [STAGING]})
    forged["metadata"]["annotations"] = {ANNOTATION_ATTESTATION: '{"token": 1}'}
    await world.apply(by_hand, forged)
    assert await phase_of(world, "by-hand") == "SkipDenied"
    assert await phase_of(world, "forged") == "SkipDenied"

    name = await posted(hotfix, tag="1.2.5")
    assert await phase_of(world, name) == "Promoting"
    await world.apply(copy_of(await world.get(BUNDLE, name), "copy"))
    assert await phase_of(world, "copy") == "SkipDenied"


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


ATTESTOR = Attestor(b"k" * 32)
SCOPE = TokenScope("hotfix", (STAGING,))
POSTED = datetime(2026, 3, 3, 10, tzinfo=UTC)


def attested() -> JsonObject:
    """Return a Bundle as the webhook creates it."""
    made = bundle("app-1", intent={"skip": [STAGING]}, provenance={"author": "dana"})
    made["metadata"]["creationTimestamp"] = format_time(POSTED)
    text = ATTESTOR.attest(Bundle.model_validate(made), SCOPE, now=POSTED)
    made["metadata"]["annotations"] = {ANNOTATION_ATTESTATION: text}
    return made


def proven(made: JsonObject) -> TokenScope | None:
    return ATTESTOR.verify(Bundle.model_validate(made)).scope


def forged_scope() -> str:
    text = orjson.loads(attested()["metadata"]["annotations"][ANNOTATION_ATTESTATION])
    return orjson.dumps({**text, "maySkip": [DEV, STAGING]}).decode()


def test_an_attestation_proves_the_scope_of_the_bundle_that_it_was_written_for() -> None:
    assert proven(attested()) == SCOPE
    assert Attestor(b"l" * 32).verify(Bundle.model_validate(attested())).scope is None


@pytest.mark.parametrize(
    "change",
    [
        {"artifacts": {"images": [{"reference": "ghcr.io/acme/my-app:6.6.6"}]}},
        {"provenance": {"author": "mallory"}},
        {"intent": {"skip": [DEV, STAGING]}},
    ],
    ids=["artifacts", "provenance", "skip"],
)
def test_an_attestation_does_not_survive_a_change_of_what_it_covers(change: JsonObject) -> None:
    made = attested()
    assert proven({**made, "spec": {**made["spec"], **change}}) is None


@pytest.mark.parametrize(
    "change",
    [
        {"name": "copy"},
        {"namespace": "elsewhere"},
        {"labels": {"kardinal.io/pipeline": "other"}},
        {"creationTimestamp": format_time(POSTED + timedelta(minutes=6))},
        {"creationTimestamp": format_time(POSTED - timedelta(minutes=6))},
        {"annotations": {ANNOTATION_ATTESTATION: forged_scope()}},
    ],
    ids=["name", "namespace", "pipeline", "made again later", "made before", "scope"],
)
def test_an_attestation_is_for_one_bundle_of_one_pipeline_and_moment(change: JsonObject) -> None:
    made = attested()
    assert proven({**made, "metadata": {**made["metadata"], **change}}) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"token": 1}', '{"token":"a","maySkip":[1],"issued":1,"mac":"x"}', "9" * 20_000]
)
def test_an_annotation_of_any_text_closes_and_stops_nothing(text: str) -> None:
    made = attested()
    made["metadata"]["annotations"] = {ANNOTATION_ATTESTATION: text}
    assert proven(made) is None


async def test_a_gate_that_asks_for_a_token_says_why_it_is_closed(world: World, hotfix: Ci) -> None:
    await world.apply(gate("release", 'bundle.attested.token == "hotfix"', applies_to=DEV, namespace=POLICIES))
    await world.settle()
    await world.apply(bundle("by-hand"))
    closed = await world.wait_for(POLICY_GATE, f"by-hand-{DEV}-release", lambda obj: "ready" in obj.get("status", {}))
    assert closed["status"]["ready"] is False
    assert "not posted to the webhook" in closed["status"]["reason"]
    name = (await hotfix.post(body_of(tag="2.0.0"))).body["name"]
    await world.wait_for(POLICY_GATE, f"{name}-{DEV}-release", lambda obj: obj.get("status", {}).get("ready") is True)


async def test_the_key_is_made_once_and_shared(world: World, controller: ControlPlane) -> None:
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
    scope = TokenScope("hotfix", ())
    assert len({replica.attest(bundle_, scope, now=world.clock.now()) for replica in replicas}) == 1


async def test_a_key_that_is_too_short_is_refused_with_the_remedy(world: World) -> None:
    weak = {"metadata": {"name": "kardinal-attestation", "namespace": SYSTEM_NAMESPACE}, "data": {"key": "aGk="}}
    await world.client.create(SECRET, {"apiVersion": "v1", "kind": "Secret", **weak})
    with pytest.raises(RuntimeFailure, match="delete the Secret"):
        await Attestations(world.client, namespace=SYSTEM_NAMESPACE).start()


async def test_a_template_that_believes_a_label_is_warned_about(world: World, controller: ControlPlane) -> None:
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
