"""Bundles that chains end in, end to end: when one is created, whose it is, and what the Workload shows of it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from kardinal.objects import JsonObject
from kardinal.promotion.kinds import BUNDLE
from kardinal_supplychain.api.kinds import RUNNABLE, WORKLOAD
from tests.supplychain.chains import (
    Chains,
    Requests,
    blueprint,
    condition,
    config_map,
    resource,
    template,
    workload,
)
from tests.supplychain.widgets import run_template, runnable
from tests.support.accounts import rule
from tests.support.names import TEAM
from tests.support.programs import start_controller

IMAGE = template(
    "image",
    config_map("$(workload.metadata.name)$", image="$(workload.spec.image)$"),
    kind="ClusterImageTemplate",
    imagePath="data.image",
)
CHAIN = blueprint(
    resource("image", kind="ClusterImageTemplate"),
    resource("bundle", kind="ClusterTemplate", images=[{"name": "image", "resource": "image"}]),
    serviceAccountRef={"name": "dev"},
)


def bundle_template(**spec: Any) -> JsonObject:
    """Return the template of a Bundle with other fields in its spec."""
    body = {
        "apiVersion": "kardinal.io/v1alpha1",
        "kind": "Bundle",
        "metadata": {"generateName": "$(workload.metadata.name)$-", "labels": {"kardinal.io/pipeline": "shop"}},
        "spec": {"artifacts": {"images": [{"reference": "$(image)$"}]}, **spec},
    }
    return template("bundle", body, kind="ClusterTemplate", healthRule={"singleConditionType": "Ready"})


@pytest.fixture
async def posting(chains: Chains) -> Chains:
    """Return a world in which a Bundle of `shop:1` was created for the Workload `web`."""
    bundles = rule("get", "create", on="bundles", group="kardinal.io")
    await chains.account("dev", rule("*", on="configmaps"), bundles)
    await chains.apply(IMAGE, bundle_template(), CHAIN, workload(image="shop:1"))
    return chains


async def bundles(chains: Chains) -> list[JsonObject]:
    """Return all Bundles in the order of their creation."""
    await chains.world.settle()
    found = await chains.world.objects(BUNDLE, TEAM)
    return sorted(found, key=lambda each: int(each["metadata"]["resourceVersion"]))


async def images(chains: Chains) -> list[str]:
    """Return the images of all Bundles, in order."""
    return sorted(each["spec"]["artifacts"]["images"][0]["reference"] for each in await bundles(chains))


async def finish(chains: Chains, bundle: JsonObject, *, ready: str = "True", message: str = "") -> None:
    """Write the condition Ready of a Bundle, as its controller does."""
    entry = {
        "type": "Ready",
        "status": ready,
        "reason": "Verified",
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {"status": {"conditions": [entry]}}
    name = bundle["metadata"]["name"]
    await chains.world.client.patch(BUNDLE, name, TEAM, status, subresource="status")
    await chains.world.settle()


async def test_an_image_becomes_a_bundle_and_its_readiness_that_of_the_workload(posting: Chains) -> None:
    [bundle] = await bundles(posting)
    assert bundle["spec"]["artifacts"]["images"] == [{"reference": "shop:1"}]
    assert "ownerReferences" not in bundle["metadata"]
    shown = await posting.resource("bundle")
    assert shown["stampedRef"]["uid"] == bundle["metadata"]["uid"]
    assert condition(shown, "Healthy")[0] == "Unknown"
    await finish(posting, bundle)
    assert condition(await posting.status(), "Ready")[0] == "True"
    await finish(posting, bundle, ready="False", message="prod is unhealthy")
    assert condition(await posting.resource("bundle"), "Healthy")[::2] == ("False", "prod is unhealthy")
    assert condition(await posting.status(), "Ready")[0] == "False"


async def test_another_image_is_another_bundle_and_the_first_one_stays(posting: Chains) -> None:
    [first] = await bundles(posting)
    await posting.apply(workload(image="shop:2"))
    assert await images(posting) == ["shop:1", "shop:2"]
    [kept, second] = sorted(
        await bundles(posting), key=lambda each: each["spec"]["artifacts"]["images"][0]["reference"]
    )
    assert kept == first
    assert (await posting.resource("bundle"))["stampedRef"]["name"] == second["metadata"]["name"]


async def test_an_image_that_comes_back_is_a_third_bundle(posting: Chains) -> None:
    await posting.apply(workload(image="shop:2"))
    await posting.apply(workload(image="shop:1"))
    assert await images(posting) == ["shop:1", "shop:1", "shop:2"]


async def test_a_change_of_all_but_artifacts_makes_no_bundle(posting: Chains) -> None:
    before = await bundles(posting)
    await posting.apply(bundle_template(provenance={"author": "ada"}, intent={"target": "dev"}))
    assert await bundles(posting) == before
    assert condition(await posting.resource("bundle"), "ResourceSubmitted")[0] == "True"


async def test_a_bundle_that_is_gone_is_not_created_again(posting: Chains) -> None:
    [bundle] = await bundles(posting)
    await finish(posting, bundle)
    await posting.world.delete(BUNDLE, bundle["metadata"]["name"])
    assert await bundles(posting) == []
    await posting.restart()
    assert await bundles(posting) == []
    assert condition(await posting.status(), "Ready")[0] == "True"
    await posting.apply(workload(image="shop:2"))
    assert await images(posting) == ["shop:2"]


async def test_a_status_that_was_not_written_makes_no_second_bundle(posting: Chains) -> None:
    before = await bundles(posting)
    await posting.world.stop(posting.program)
    await posting.world.client.patch(WORKLOAD, "web", TEAM, {"status": None}, subresource="status")
    posting.program = await posting.run(posting.world)
    assert await bundles(posting) == before
    shown = await posting.resource("bundle")
    assert shown["stampedRef"]["uid"] == before[0]["metadata"]["uid"]


async def test_a_restart_writes_nothing(posting: Chains) -> None:
    requests = Requests(posting)
    await posting.restart()
    assert (await requests.take()).made == []


async def test_a_bundle_of_the_computed_name_that_is_not_ours_is_refused(posting: Chains) -> None:
    [bundle] = await bundles(posting)
    await posting.world.stop(posting.program)
    await posting.world.client.patch(WORKLOAD, "web", TEAM, {"status": None}, subresource="status")
    await posting.world.delete(BUNDLE, bundle["metadata"]["name"])
    metadata = {field: bundle["metadata"][field] for field in ("name", "namespace", "labels")}
    forged = {"artifacts": {"images": [{"reference": "evil:1"}]}}
    await posting.world.apply(
        {"apiVersion": "kardinal.io/v1alpha1", "kind": "Bundle", "metadata": metadata, "spec": forged}
    )
    posting.program = await posting.run(posting.world)
    assert await images(posting) == ["evil:1"]
    status, reason, message = condition(await posting.resource("bundle"), "ResourceSubmitted")
    assert (status, reason) == ("False", "TemplateRejectedByAPIServer")
    assert bundle["metadata"]["name"] in message


async def test_a_refused_field_is_a_stamp_failure_with_its_path(posting: Chains) -> None:
    await posting.apply(bundle_template(intent={"skip": ["uat"]}), workload(image="shop:2"))
    status, reason, message = condition(await posting.status(), "ResourcesSubmitted")
    assert (status, reason) == ("False", "TemplateStampFailure")
    assert "spec.intent.skip" in message
    assert await images(posting) == ["shop:1"]


async def test_the_deletion_of_a_workload_ends_no_promotion(posting: Chains) -> None:
    before = await bundles(posting)
    await posting.world.delete(WORKLOAD, "web")
    assert await bundles(posting) == before


async def test_a_resource_that_leaves_the_blueprint_takes_no_bundle_along(posting: Chains) -> None:
    before = await bundles(posting)
    await posting.apply(blueprint(resource("image", kind="ClusterImageTemplate"), serviceAccountRef={"name": "dev"}))
    assert await bundles(posting) == before
    assert not (await posting.status()).get("orphans")


async def test_a_runnable_makes_no_bundle(posting: Chains) -> None:
    before = await bundles(posting)
    body = bundle_template(artifacts={"images": [{"reference": "shop:1"}]})["spec"]["template"]
    body["metadata"]["generateName"] = "x-"
    await posting.apply(run_template("bundle", body), runnable("shop", template="bundle", serviceAccountName="dev"))
    status, reason, message = condition(await posting.status("shop", RUNNABLE), "RunTemplateReady")
    assert (status, reason) == ("False", "TemplateStampFailure")
    assert "Bundle" in message
    assert await bundles(posting) == before


async def test_an_image_without_a_version_is_a_stamp_failure(posting: Chains) -> None:
    await posting.apply(workload(image="registry.example.com/shop"))
    status, reason, message = condition(await posting.status(), "ResourcesSubmitted")
    assert (status, reason) == ("False", "TemplateStampFailure")
    assert "spec.artifacts.images[0].reference" in message
    assert await images(posting) == ["shop:1"]


async def test_a_value_of_a_secret_is_not_quoted_by_a_failure(posting: Chains) -> None:
    await posting.account("dev", rule("*", on="secrets"), rule("get", "create", on="bundles", group="kardinal.io"))
    value = base64.b64encode(b"hidden-value").decode()
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "image"}, "data": {"image": value}}
    await posting.apply(template("image", secret, kind="ClusterImageTemplate", imagePath="data.image"))
    status = await posting.status()
    assert condition(status, "ResourcesSubmitted")[1] == "TemplateStampFailure"
    assert value not in json.dumps(status)
    assert value not in json.dumps(await posting.world.events())


async def test_an_account_that_may_not_create_bundles_is_told(posting: Chains) -> None:
    await posting.account("poor", rule("*", on="configmaps"))
    await posting.apply(workload("poor", image="shop:1", serviceAccountName="poor"))
    status, reason, message = condition(await posting.status("poor"), "ResourcesSubmitted")
    assert (status, reason) == ("False", "TemplateRejectedByAPIServer")
    assert "bundles" in message


async def test_workloads_that_share_a_pipeline_are_warned(posting: Chains) -> None:
    assert await posting.world.events("SharedPipeline") == []
    await posting.apply(workload("cart", image="cart:1"))
    [event] = await posting.world.events("SharedPipeline")
    assert event["type"] == "Warning"
    assert event["regarding"]["name"] == "cart"
    assert "Workload web" in event["note"]


async def test_a_pipeline_that_does_not_exist_is_told_by_the_workload(posting: Chains) -> None:
    await start_controller(posting.world)
    status, reason, message = condition(await posting.resource("bundle"), "Healthy")
    assert (status, reason) == ("False", "ReadyCondition")
    assert "Pipeline shop" in message
