"""Jobs that really run: the controllers of Kubernetes end them, and remove them; KWOK stands in for their node."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from kardinal.objects import CONFIG_MAP, JsonObject, ResourceType
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
from tests.support.world import World

JOB = ResourceType("batch", "v1", "Job", "jobs")
POD = ResourceType("", "v1", "Pod", "pods")

GARBAGE_SECONDS = 120

PAGE = Path(__file__).parents[2] / "docs/supply-chains.md"
DOCUMENTED: JsonObject = next(
    document
    for block in re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    for document in yaml.safe_load_all(block)
    if document.get("metadata", {}).get("name") == "migration"
)
"""The template that the documentation has for a Job."""


def job_body(image: str, *, name: JsonObject | None = None, **spec: Any) -> JsonObject:
    container = {"name": "check", "image": image}
    pod = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    metadata = name or {"generateName": "check-"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": pod, **spec}}


def checking(lifecycle: str, **spec: Any) -> JsonObject:
    """Return a template whose Job runs the image of the parameter `image`, and gives it once it has run."""
    name = {"name": "check"} if lifecycle == "mutable" else None
    return template(
        "check",
        job_body("$(params.image)$", name=name, **spec),
        configPath="spec.template.spec.containers[0].image",
        healthRule=DOCUMENTED["spec"]["healthRule"],
        lifecycle=lifecycle,
        params=[{"name": "image", "default": "check:1"}, {"name": "seconds", "default": 600}],
    )


CHAIN = blueprint(
    resource("check"),
    resource("show", configs=[{"name": "checked", "resource": "check"}]),
    serviceAccountRef={"name": "dev"},
)


def web(image: str, **params: Any) -> JsonObject:
    given = {"image": image, **params}
    return workload(params=[{"name": name, "value": value} for name, value in given.items()])


@pytest.fixture
async def chains(world: World) -> Chains:
    """Return a world with a chain whose first resource, a Job, is to be defined; the second shows its output."""
    if not world.server.runs_workloads:
        pytest.skip("Jobs run on a real server: `make test-kube-fast`")
    chains = await Chains.start(world)
    await chains.account("dev", rule("*", on="jobs", group="batch"), rule("*", on="configmaps"))
    await chains.apply(template("show", config_map("shown", image="$(config)$")), CHAIN)
    return chains


async def jobs(chains: Chains) -> list[JsonObject]:
    """Return the Jobs, the oldest first, once nothing more happens."""
    await chains.world.settle()
    found = await chains.world.objects(JOB, TEAM)
    return sorted(found, key=lambda job: int(job["metadata"]["annotations"].get("kardinal.io/sequence", 0)))


async def until_shown(chains: Chains, image: str) -> None:
    await chains.world.wait_for(CONFIG_MAP, "shown", lambda shown: bool(shown["data"]["image"] == image))


async def left(chains: Chains, *kinds: ResourceType) -> list[JsonObject]:
    """Return the objects of these kinds."""
    return [obj for kind in kinds for obj in await chains.world.objects(kind, TEAM)]


async def until_removed(chains: Chains, *kinds: ResourceType) -> None:
    async def are_gone() -> bool:
        return not await left(chains, *kinds)

    await chains.world.until(are_gone)


async def test_deletion_of_a_workload_takes_its_objects(chains: Chains) -> None:
    """The garbage collector learns of new kinds every 30 seconds, and looks for their objects less and less often."""
    await chains.apply(checking("immutable"), web("check:1"))
    await until_shown(chains, "check:1")
    assert len(await chains.world.objects(POD, TEAM)) == 1
    await chains.world.delete(WORKLOAD, "web")
    async with asyncio.timeout(GARBAGE_SECONDS):
        while await left(chains, JOB, POD, CONFIG_MAP):
            await chains.world.live(timedelta(seconds=1))


async def test_immutable_job_runs_and_gives_its_output(chains: Chains) -> None:
    await chains.apply(checking("immutable"), web("check:1"))
    await until_shown(chains, "check:1")
    [first] = await jobs(chains)
    assert first["status"]["succeeded"] == 1
    found = await chains.resource("check")
    assert condition(found, "Healthy")[:2] == ("True", "MatchedCondition")
    assert found["lastRun"]["outcome"] == "succeeded"
    assert condition(await chains.status(), "Ready")[0] == "True"
    await chains.apply(web("check:2"))
    await until_shown(chains, "check:2")
    ran = await jobs(chains)
    assert [job["status"]["succeeded"] for job in ran] == [1, 1]
    assert first["metadata"]["uid"] == ran[0]["metadata"]["uid"]


async def test_job_of_the_documentation_runs(chains: Chains) -> None:
    chain = blueprint(resource("j", "migration", kind="ClusterTemplate"), serviceAccountRef={"name": "dev"})
    await chains.apply(DOCUMENTED, chain, workload())

    def is_ready(owner: JsonObject) -> bool:
        return condition(owner["status"], "Ready")[0] == "True"

    await chains.world.wait_for(WORKLOAD, "web", is_ready)
    [job] = await jobs(chains)
    assert job["status"]["succeeded"] == 1


async def test_failed_job_keeps_the_output_of_the_one_before(chains: Chains) -> None:
    """Its image cannot be pulled, and its deadline passes."""
    await chains.apply(checking("immutable", activeDeadlineSeconds="$(params.seconds)$"), web("check:1"))
    await until_shown(chains, "check:1")
    await chains.apply(web("check:broken", seconds=1))

    def has_failed(owner: JsonObject) -> bool:
        return bool(owner["status"]["resources"][0]["lastRun"]["outcome"] == "failed")

    await chains.world.wait_for(WORKLOAD, "web", has_failed)
    status, reason, message = condition(await chains.resource("check"), "Healthy")
    assert (status, reason) == ("False", "MatchedCondition")
    assert "deadline" in message
    assert (await chains.get(CONFIG_MAP, "shown"))["data"] == {"image": "check:1"}


@pytest.mark.parametrize(("lifecycle", "seconds"), [("immutable", 0), ("immutable", 1), ("mutable", 1)])
async def test_job_with_a_time_to_live_runs_once_for_each_render(chains: Chains, lifecycle: str, seconds: int) -> None:
    """Beyond: Cartographer makes a Job again whenever it is gone, so that it runs for ever."""
    requests = Requests(chains)
    for image in ("check:1", "check:2"):
        await chains.apply(checking(lifecycle, ttlSecondsAfterFinished=seconds), web(image))
        await until_shown(chains, image)
        await until_removed(chains, JOB, POD)
        await chains.restart()
        assert await jobs(chains) == []
        assert (await chains.resource("check"))["lastRun"]["outcome"] == "succeeded"
        assert condition(await chains.status(), "Ready")[0] == "True"
        made = [each for each in (await requests.take()).made if each.endswith(" jobs")]
        assert made == [{"immutable": "create jobs", "mutable": "patch jobs"}[lifecycle]]


async def test_mutable_job_that_ran_cannot_change(chains: Chains) -> None:
    await chains.apply(checking("mutable"), web("check:1"))
    await until_shown(chains, "check:1")
    await chains.apply(web("check:2"))
    status, reason, message = condition(await chains.resource("check"), "ResourceSubmitted")
    assert (status, reason) == ("False", "TemplateRejectedByAPIServer")
    assert "lifecycle: immutable" in message
    assert (await chains.get(CONFIG_MAP, "shown"))["data"] == {"image": "check:1"}
    await chains.apply(checking("immutable"))
    await until_shown(chains, "check:2")
    [job] = await jobs(chains)
    assert job["metadata"]["generateName"] == "check-"

    async def is_the_only_pod() -> bool:
        # A plain deletion of a Job leaves its pods behind.
        return len(await left(chains, POD)) == 1

    await chains.world.until(is_the_only_pod)


async def test_runnable_runs_a_job_for_each_input(chains: Chains) -> None:
    body = job_body("$(runnable.spec.inputs.value)$", ttlSecondsAfterFinished=1, activeDeadlineSeconds=600)
    image = "spec.template.spec.containers[0].image"
    await chains.apply(run_template(body=body, image=image))

    def shows(image: str) -> Any:
        return lambda found: bool((found.get("status") or {}).get("outputs") == {"image": image})

    requests = Requests(chains)
    for value in ("check:1", "check:2"):
        await chains.apply(runnable(value=value, serviceAccountName="dev"))
        await chains.world.wait_for(RUNNABLE, "tests", shows(value))
        await until_removed(chains, JOB, POD)
        await chains.restart()
        assert await jobs(chains) == []
        assert condition(await chains.status("tests", RUNNABLE), "Ready")[:2] == ("True", "Ready")
        assert [each for each in (await requests.take()).made if each.endswith(" jobs")] == ["create jobs"]


async def test_runnable_says_why_its_job_failed(chains: Chains) -> None:
    body = job_body("check:broken", activeDeadlineSeconds=1)
    await chains.apply(run_template(body=body), runnable(serviceAccountName="dev"))

    def has_failed(found: JsonObject) -> bool:
        return "lastRun" in (found.get("status") or {}) and found["status"]["lastRun"]["outcome"] == "failed"

    found = await chains.world.wait_for(RUNNABLE, "tests", has_failed)
    status, reason, message = condition(found["status"], "StampedObjectCondition")
    assert (status, reason) == ("False", "SucceededCondition")
    assert "deadline" in message
