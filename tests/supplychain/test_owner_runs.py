"""Runs and orphans of Workloads end to end: lifecycles, retention, and what is left behind."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta
from typing import Any

import pytest

from kardinal.objects import CONFIG_MAP, JsonObject
from kardinal_supplychain.api.kinds import CLUSTER_IMAGE_TEMPLATE, CLUSTER_SUPPLY_CHAIN, WORKLOAD
from tests.graph.interruptions import before_write, cut_after
from tests.supplychain.chains import (
    IDENTITY,
    KILL_SEEDS,
    KILLS,
    Chains,
    Requests,
    blueprint,
    condition,
    config_map,
    resource,
    template,
    workload,
)
from tests.supplychain.widgets import WIDGET, finish, install_widgets, widget_body, widgets
from tests.support.accounts import allow, rule
from tests.support.names import TEAM

ALL_WIDGETS = rule("*", on="widgets", group="example.com")
ALL_CONFIG_MAPS = rule("*", on="configmaps")
IMAGE = "ClusterImageTemplate"


def building(lifecycle: str = "tekton", *, name: str = "build", body: JsonObject | None = None, **spec: Any) -> Any:
    """Return a template whose Widgets have the parameter `value`, and give the image of their status."""
    made = widget_body(value="$(params.value)$") if body is None else body
    fields = {"imagePath": "status.image", "params": [{"name": "value", "default": "a"}], "lifecycle": lifecycle}
    return template(name, made, kind=IMAGE, **{**fields, **spec})


def web(value: str = "a") -> JsonObject:
    return workload(params=[{"name": "value", "value": value}])


SHOW = template("show", config_map("shown", image="$(image)$"))
BUILD = resource("build", kind=IMAGE)
CHAIN = blueprint(
    BUILD, resource("show", images=[{"name": "i", "resource": "build"}]), serviceAccountRef={"name": "dev"}
)


@pytest.fixture
async def stamping(chains: Chains) -> Chains:
    """Return a world in which the Workload `web` has a run that has not finished, and waits for its image."""
    await install_widgets(chains)
    await chains.account("dev", ALL_WIDGETS, ALL_CONFIG_MAPS)
    await chains.apply(building(), SHOW, CHAIN, web())
    return chains


async def values(chains: Chains) -> list[object]:
    return [run["spec"]["value"] for run in await widgets(chains)]


async def shown(chains: Chains) -> object:
    return (await chains.get(CONFIG_MAP, "shown"))["data"]["image"]


async def test_run_gives_its_output_once_it_is_healthy(stamping: Chains) -> None:
    [run] = await widgets(stamping)
    found = await stamping.resource("build")
    assert found["stampedRef"]["name"] == run["metadata"]["name"]
    assert condition(found, "ResourceSubmitted")[:2] == ("Unknown", "MissingValueAtPath")
    assert condition(await stamping.resource("show"), "ResourceSubmitted")[1] == "WaitingForInput"
    await finish(stamping, run, image="r/a@sha256:1")
    assert await shown(stamping) == "r/a@sha256:1"
    assert condition(await stamping.resource("build"), "Healthy")[:2] == ("True", "SucceededCondition")


async def test_output_of_the_last_healthy_run_is_kept(stamping: Chains) -> None:
    await finish(stamping, (await widgets(stamping))[0], image="one")
    await stamping.apply(web("b"))
    assert await values(stamping) == ["b", "a"]
    await finish(stamping, (await widgets(stamping))[0], status="False", image="broken")
    found = await stamping.resource("build")
    assert condition(found, "Healthy")[:2] == ("False", "SucceededCondition")
    assert condition(found, "ResourceSubmitted")[:2] == ("True", "ResourceSubmissionComplete")
    assert await shown(stamping) == "one"
    await stamping.apply(web("c"))
    await finish(stamping, (await widgets(stamping))[0], image="three")
    assert await shown(stamping) == "three"


async def test_run_without_an_image_is_told(stamping: Chains) -> None:
    await finish(stamping, (await widgets(stamping))[0], status="False")
    assert "unhealthy object" in condition(await stamping.resource("build"), "ResourceSubmitted")[2]


@pytest.mark.parametrize("lifecycle", ["immutable", "tekton"])
async def test_value_that_comes_back_makes_a_third_run(stamping: Chains, lifecycle: str) -> None:
    await stamping.apply(building(lifecycle, healthRule={"singleConditionType": "Succeeded"}))
    for value in ("b", "a"):
        await stamping.apply(web(value))
    assert await values(stamping) == ["a", "b", "a"]


async def test_run_that_finishes_and_goes_during_a_reconcile_is_not_repeated(chains: Chains) -> None:
    """A Job with a time to live of 0 may go while a reconcile of its owner applies another object."""
    await install_widgets(chains)
    await chains.account("dev", ALL_WIDGETS, ALL_CONFIG_MAPS)
    settings = {"configPath": "data.value", "params": [{"name": "value", "default": "a"}]}
    first = template("first", config_map("first", value="$(params.value)$"), kind="ClusterConfigTemplate", **settings)
    await chains.apply(first, building(body=widget_body()))
    inputs = [{"name": "first", "resource": "first"}]
    run_after = resource("build", kind=IMAGE, configs=inputs)
    chain = blueprint(resource("first", kind="ClusterConfigTemplate"), run_after, serviceAccountRef={"name": "dev"})
    await chains.apply(chain, web())
    [run] = await widgets(chains)
    [informer] = [each for each in chains.program.manager.dynamic.informers if each.resource == WIDGET]
    gone = asyncio.Event()
    informer.on_event(lambda event: gone.set() if event.new is None else None)

    async def finish_and_remove() -> None:
        await finish(chains, run, image="one")
        await chains.world.client.delete(WIDGET, run["metadata"]["name"], TEAM)
        await gone.wait()

    reached = before_write(chains.program.manager.client, 0, finish_and_remove)
    await chains.apply(web("b"))

    assert reached.is_set()
    assert await widgets(chains) == []
    assert (await chains.resource("build"))["lastRun"]["outcome"] == "succeeded"


async def test_restart_stamps_no_run_again(stamping: Chains) -> None:
    """Cartographer forgets after a restart which object it stamped last."""
    await finish(stamping, (await widgets(stamping))[0], image="one")
    await stamping.world.settle()
    requests = Requests(stamping)
    await stamping.restart()
    assert (await requests.take()).made == []


async def test_another_name_of_the_blueprint_makes_no_run(stamping: Chains) -> None:
    [run] = await widgets(stamping)
    await stamping.world.client.delete(CLUSTER_SUPPLY_CHAIN, "chain")
    other = {**CHAIN, "metadata": {"name": "other"}}
    await stamping.apply(other)
    assert [each["metadata"]["uid"] for each in await widgets(stamping)] == [run["metadata"]["uid"]]


async def test_finished_run_that_vanishes_is_not_repeated(stamping: Chains) -> None:
    """Beyond: Cartographer stamps it again, so that a Job with a time to live runs for ever."""
    [run] = await widgets(stamping)
    await finish(stamping, run, image="one")
    # At once, as a time to live of no seconds does it.
    await stamping.world.delete(WIDGET, run["metadata"]["name"])
    assert await widgets(stamping) == []
    assert await shown(stamping) == "one"
    await stamping.restart()
    assert await widgets(stamping) == []
    assert condition(await stamping.status(), "Ready")[:2] == ("True", "Ready")
    await stamping.apply(web("b"))
    assert await values(stamping) == ["b"]


async def test_unfinished_run_that_is_deleted_is_made_again(stamping: Chains) -> None:
    """Cartographer stopped at a run that was deleted by hand (#1188)."""
    [run] = await widgets(stamping)
    await stamping.world.delete(WIDGET, run["metadata"]["name"])
    [again] = await widgets(stamping)
    assert again["metadata"]["uid"] != run["metadata"]["uid"]


async def test_surplus_runs_are_removed(stamping: Chains) -> None:
    await stamping.apply(building(retentionPolicy={"maxFailedRuns": 1, "maxSuccessfulRuns": 1}))
    for value, result in (("a", "True"), ("b", "False"), ("c", "True"), ("d", "False")):
        await stamping.apply(web(value))
        await finish(stamping, (await widgets(stamping))[0], status=result, image=value)
    assert await values(stamping) == ["d", "c"]
    assert await shown(stamping) == "c"


async def test_fixed_name_is_refused_when_the_render_changes(stamping: Chains) -> None:
    fixed = {**widget_body(value="$(params.value)$"), "metadata": {"name": "fixed"}}
    await stamping.apply(building(body=fixed))
    assert condition(await stamping.resource("build"), "ResourceSubmitted")[1] == "MissingValueAtPath"
    await stamping.apply(web("b"))
    _, reason, message = condition(await stamping.resource("build"), "ResourceSubmitted")
    assert reason == "TemplateRejectedByAPIServer"
    assert "already exists" in message


async def test_resources_with_one_template_have_runs_of_their_own(stamping: Chains) -> None:
    again = resource("again", "build", kind=IMAGE)
    await stamping.apply(blueprint(BUILD, again, serviceAccountRef={"name": "dev"}))
    assert len({run["metadata"]["name"] for run in await widgets(stamping)}) == 2


async def test_mutable_object_that_finished_and_vanished_is_not_applied_again(stamping: Chains) -> None:
    """Beyond: Cartographer makes a Job with a time to live anew whenever it is gone."""
    named = {**widget_body(value="$(params.value)$"), "metadata": {"name": "job"}}
    await stamping.apply(building("mutable", body=named))
    [job] = await stamping.world.objects(WIDGET)
    await finish(stamping, job, image="one")
    await stamping.world.delete(WIDGET, "job")
    await stamping.restart()
    assert await shown(stamping) == "one"
    assert await stamping.world.objects(WIDGET) == []
    await stamping.apply(web("b"))
    assert [obj["spec"]["value"] for obj in await stamping.world.objects(WIDGET)] == ["b"]
    await stamping.world.delete(WIDGET, "job")
    await stamping.world.settle()
    assert len(await stamping.world.objects(WIDGET)) == 1


async def test_object_of_the_earlier_lifecycle_is_removed(stamping: Chains) -> None:
    """Cartographer leaves the mutable object behind (#1112)."""
    mutable = {**widget_body(value="mutable"), "metadata": {"name": "one"}}
    await stamping.apply(template("build", mutable, kind=IMAGE, imagePath="status.image"))
    names = [obj["metadata"]["name"] for obj in await stamping.world.objects(WIDGET)]
    assert names == ["one"]
    await stamping.apply(building())
    [run] = await stamping.world.objects(WIDGET)
    assert run["metadata"]["generateName"] == "run-"
    assert "orphans" not in await stamping.status()


async def test_object_of_a_removed_resource_is_removed(stamping: Chains) -> None:
    await finish(stamping, (await widgets(stamping))[0], image="one")
    assert await shown(stamping) == "one"
    await stamping.apply(blueprint(BUILD, serviceAccountRef={"name": "dev"}))
    assert await stamping.world.find(CONFIG_MAP, "shown") is None
    assert len(await widgets(stamping)) == 1


async def test_all_runs_of_a_kind_that_is_stamped_no_more_are_removed(stamping: Chains) -> None:
    """Also after a restart in between, although the status names the last one only."""
    await stamping.apply(web("b"))
    assert len(await widgets(stamping)) == 2
    await stamping.world.stop(stamping.program)
    other = template("build", config_map("built", image="two"), kind=IMAGE, imagePath="data.image")
    await stamping.world.client.apply(CLUSTER_IMAGE_TEMPLATE, other, field_manager="test", force=True)
    stamping.program = await Chains.run(stamping.world, identity=IDENTITY)
    assert await shown(stamping) == "two"
    assert await stamping.world.objects(WIDGET) == []


async def test_nothing_is_removed_while_a_resource_waits(stamping: Chains) -> None:
    await finish(stamping, (await widgets(stamping))[0], image="one")
    assert await shown(stamping) == "one"
    renamed = template("show", config_map("renamed", image="$(params.missing)$"))
    await stamping.apply(renamed)
    assert condition(await stamping.resource("show"), "ResourceSubmitted")[1] == "TemplateStampFailure"
    assert await shown(stamping) == "one"
    await stamping.apply(template("show", config_map("renamed", image="$(image)$")))
    assert await stamping.world.find(CONFIG_MAP, "shown") is None
    assert (await stamping.get(CONFIG_MAP, "renamed"))["data"] == {"image": "one"}


@pytest.mark.parametrize("label", ["tie", "none"])
async def test_nothing_is_removed_while_no_blueprint_matches(stamping: Chains, label: str) -> None:
    if label == "tie":
        await stamping.apply({**CHAIN, "metadata": {"name": "other"}})
    else:
        await stamping.world.client.delete(CLUSTER_SUPPLY_CHAIN, "chain")
    await stamping.world.settle()
    assert condition(await stamping.status(), "SupplyChainReady")[0] == "False"
    assert len(await widgets(stamping)) == 1
    assert [each["name"] for each in (await stamping.status())["resources"]] == ["build", "show"]


async def test_objects_of_another_blueprint_are_removed(stamping: Chains) -> None:
    await finish(stamping, (await widgets(stamping))[0], image="one")
    await stamping.world.settle()
    other = blueprint(resource("only"), name="other", selector={"other": "yes"}, serviceAccountRef={"name": "dev"})
    await stamping.apply(template("only", config_map("only")), other)
    moved = web()
    moved["metadata"]["labels"] = {"other": "yes"}
    await stamping.apply(moved)
    assert await stamping.world.find(CONFIG_MAP, "only") is not None
    assert await stamping.world.find(CONFIG_MAP, "shown") is None
    assert await stamping.world.objects(WIDGET) == []


@pytest.mark.virtual_time("the next try is a minute later")
async def test_orphan_that_may_not_be_deleted_is_listed_and_tried_again(stamping: Chains) -> None:
    """Cartographer forgets it when its deletion is refused."""
    await finish(stamping, (await widgets(stamping))[0], image="one")
    assert await shown(stamping) == "one"
    await allow(stamping.world, "dev", ALL_WIDGETS, rule("get", on="configmaps"))
    await stamping.apply(blueprint(BUILD, serviceAccountRef={"name": "dev"}))
    assert [each["name"] for each in (await stamping.status())["orphans"]] == ["shown"]
    assert len(await stamping.world.events("StampedObjectNotRemoved")) == 1
    await stamping.restart()
    assert [each["name"] for each in (await stamping.status())["orphans"]] == ["shown"]
    await allow(stamping.world, "dev", ALL_WIDGETS, ALL_CONFIG_MAPS)
    await stamping.world.live(timedelta(minutes=1))
    assert await stamping.world.find(CONFIG_MAP, "shown") is None
    assert "orphans" not in await stamping.status()


async def test_object_that_only_a_forged_status_names_is_left_alone(stamping: Chains) -> None:
    """A status is no proof: the controller of the live object decides."""
    await stamping.apply({**config_map("mine"), "metadata": {"name": "mine", "namespace": TEAM}})
    orphan = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": TEAM, "name": "mine", "resource": "configmaps"}
    elsewhere = {**orphan, "namespace": "kube-system"}
    odd = {**orphan, "resource": "configmaps/../secrets"}
    body = {"status": {"orphans": [orphan, elsewhere, odd]}}
    await stamping.world.client.patch(WORKLOAD, "web", TEAM, body, subresource="status")
    await stamping.apply(web("b"))
    assert await stamping.world.find(CONFIG_MAP, "mine") is not None
    assert "orphans" not in await stamping.status()


async def test_runs_go_with_their_owner(stamping: Chains) -> None:
    await stamping.world.delete(WORKLOAD, "web")
    assert await widgets(stamping) == []


@pytest.mark.parametrize("seed", KILL_SEEDS)
async def test_runs_are_what_they_were_wherever_the_program_is_killed(stamping: Chains, seed: int) -> None:
    """A hundred kills before any of the writes of a chain with three runs: no run is lost, and none is made twice."""
    rng = random.Random(seed)
    others = [resource(name, "build", kind=IMAGE) for name in ("second", "third")]
    unlimited = building(retentionPolicy={"maxFailedRuns": 100, "maxSuccessfulRuns": 100})
    chain = blueprint(BUILD, *others, CHAIN["spec"]["resources"][1], serviceAccountRef={"name": "dev"})
    await stamping.apply(unlimited, chain)
    value = "a"
    for _ in range(KILLS):
        runs = await widgets(stamping)
        before = {run["metadata"]["uid"] for run in runs}
        cut_after(stamping.program.manager.client, rng.randrange(6))
        changed = rng.choice(["a", "b", "c", value])
        if changed == value:
            await finish(stamping, rng.choice(runs), status=rng.choice(["True", "False"]), image=value)
        else:
            await stamping.world.client.apply(WORKLOAD, web(changed), field_manager="test", force=True)
        await stamping.world.settle()
        await stamping.restart()
        now = {run["metadata"]["uid"] for run in await widgets(stamping)}
        assert before <= now
        assert len(now - before) == (0 if changed == value else 3)
        value = changed
