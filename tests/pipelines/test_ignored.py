"""A Pipeline says which of its fields have no effect here, and how they get one."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import pytest

from kardinal.objects import SECRET, JsonObject
from kardinal.objects.secret_purposes import CREDENTIALS_WEBHOOK, LABEL_CREDENTIALS
from kardinal.promotion.kinds import PIPELINE
from kardinal_controller.program import ControlPlane
from tests.bundles.reading import REPOSITORY, condition
from tests.support.names import DEV, TEAM
from tests.support.objects import pipeline
from tests.support.programs import start_controller
from tests.support.secret_values import secret_value
from tests.support.world import World

VALUE = secret_value("long-enough-for-it")
URL = "https://git.example.com/acme/config"


def with_webhook(**git: Any) -> JsonObject:
    made = pipeline(URL, provider="gitea", environments=[DEV])
    made["spec"]["git"] |= {"webhookSecretRef": {"name": "hook"}, **git}
    return made


def hook(key: str = "webhookSecret", value: str = VALUE, label: str = CREDENTIALS_WEBHOOK) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "hook", "namespace": TEAM, "labels": {LABEL_CREDENTIALS: label}},
        "data": {key: base64.b64encode(value.encode()).decode()},
    }


async def ignored(world: World, reason: str) -> str:
    """Return the message of the condition once it has a reason."""

    def holds(stored: JsonObject) -> bool:
        found = condition(stored, "Ignored")
        return found is not None and (found["status"], found["reason"]) == ("True", reason)

    stored = await world.wait_for(PIPELINE, "my-app", holds)
    found = condition(stored, "Ignored")
    assert found is not None
    return str(found["message"])


async def nothing_ignored(world: World) -> None:
    def holds(stored: JsonObject) -> bool:
        return condition(stored) is not None and condition(stored, "Ignored") is None

    await world.wait_for(PIPELINE, "my-app", holds, within=timedelta(hours=1))


async def test_a_pull_secret_is_of_no_use_without_registries(world: World, controller: ControlPlane) -> None:
    await world.apply(pipeline(REPOSITORY, pullSecretRef={"name": "pull"}))
    assert await ignored(world, "RegistriesNotAsked") == (
        "spec.pullSecretRef: no registry is asked with it, since the controller runs without --allow-registries: "
        "ask its operator for the flag, or leave the field out"
    )
    await world.settle()
    assert [event["regarding"]["name"] for event in await world.events("Ignored")] == ["my-app"]
    await world.apply(pipeline(REPOSITORY))
    await nothing_ignored(world)


async def test_pull_request_fields_without_pull_requests_are_ignored(world: World, controller: ControlPlane) -> None:
    made = with_webhook(webhookSecretRef=None, pullRequest={"reviewers": ["alice"]})
    del made["spec"]["git"]["webhookSecretRef"]
    await world.apply(made)
    assert await ignored(world, "NoPullRequests") == (
        "spec.git.pullRequest: no environment has pull requests: set approval: pr-review or pr: true for one, "
        "or leave the field out"
    )
    made["spec"]["environments"][0]["pr"] = True
    await world.apply(made)
    await nothing_ignored(world)


async def test_a_pull_secret_is_used_where_the_operator_lists_registries(world: World) -> None:
    await start_controller(world, allow_registries=("ghcr.io",))
    await world.apply(pipeline(REPOSITORY, pullSecretRef={"name": "pull"}))
    await nothing_ignored(world)


@pytest.mark.virtual_time("lives through the back-off")
async def test_the_secret_of_a_webhook_that_is_missing_is_told_until_it_can_be_used(
    world: World, controller: ControlPlane
) -> None:
    await world.apply(with_webhook())
    assert await ignored(world, "WebhookSecretNotFound") == (
        f"spec.git.webhookSecretRef: Secret {TEAM}/hook does not exist, so deliveries are refused: "
        "create it with key webhookSecret, or leave the field out"
    )
    for made, said in (
        (hook(key="secret"), "webhookSecret"),
        (hook(label="git"), f"it has no label {LABEL_CREDENTIALS}={CREDENTIALS_WEBHOOK}"),
        (hook(value="too-short"), "less than 16 bytes"),
    ):
        if said != "webhookSecret":
            await world.client.delete(SECRET, "hook", TEAM)
        await world.apply(made)
        await world.live(timedelta(minutes=12))
        assert said in await ignored(world, "WebhookSecretUnusable")
    await world.apply(hook())
    await nothing_ignored(world)
    requests = world.audit.count()
    await world.idle(timedelta(hours=1))
    assert world.audit.count() == requests


@pytest.mark.parametrize("provider", ["git", "local"])
async def test_a_webhook_of_a_provider_that_sends_none_is_refused(
    world: World, controller: ControlPlane, provider: str
) -> None:
    made = pipeline(REPOSITORY, provider=provider, environments=[DEV])
    made["spec"]["git"]["webhookSecretRef"] = {"name": "hook"}
    await world.apply(made)
    stored = await world.wait_for(PIPELINE, "my-app", lambda obj: (condition(obj) or {}).get("status") == "False")
    assert f"spec.git.webhookSecretRef: provider {provider} sends no webhooks" in (condition(stored) or {})["message"]
    await world.settle()
    assert condition(await world.get(PIPELINE, "my-app"), "Ignored") is None


async def test_a_credential_for_a_repository_of_this_machine_is_refused(world: World, controller: ControlPlane) -> None:
    made = pipeline(REPOSITORY, environments=[DEV])
    made["spec"]["git"]["secretRef"] = {"name": "git"}
    await world.apply(made)
    stored = await world.wait_for(PIPELINE, "my-app", lambda obj: (condition(obj) or {}).get("status") == "False")
    assert (condition(stored) or {})["message"] == (
        "Pipeline/my-app spec.git.secretRef: a repository on this machine is opened without a credential; "
        "leave it out, or name a repository at a host"
    )
