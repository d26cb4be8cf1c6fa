"""The eleven metrics of a promotion, read from /metrics as Prometheus does: each is moved by what it counts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import orjson
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from kardinal.objects import SECRET
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE
from kardinal_controller.program import ControlPlane
from tests.support.names import DEV, POLICIES, PROD, TEAM
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.repository import IMAGE, GitRepository
from tests.support.reviewer import merge_pull_request
from tests.support.webhook import sign, webhook_secret
from tests.support.world import World

Reached = Callable[..., Awaitable[dict[str, Any]]]

COUNTERS = {
    "kardinal_bundles_created_total",
    "kardinal_promotions_opened_total",
    "kardinal_promotions_merged_total",
    "kardinal_promotions_failed_total",
    "kardinal_policy_gates_evaluated_total",
    "kardinal_policy_gates_blocked_total",
    "kardinal_scm_api_requests_total",
    "kardinal_rollbacks_total",
}
HISTOGRAMS = {
    "kardinal_health_check_duration_seconds",
    "kardinal_git_operation_duration_seconds",
    "kardinal_promotion_lead_time_seconds",
}


async def _families(controller: ControlPlane) -> list[Metric]:
    timeout = aiohttp.ClientTimeout(total=10)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.get(f"{controller.metrics_url}/metrics") as answer,
    ):
        text = await answer.text()
    return list(text_string_to_metric_families(text))


async def _scrape(controller: ControlPlane) -> dict[str, float]:
    """Return the sum over all labels of every sample."""
    sums: dict[str, float] = {}
    for family in await _families(controller):
        sums.setdefault(family.name, 0)
        for sample in family.samples:
            sums[sample.name] = sums.get(sample.name, 0) + sample.value
    return sums


async def _of_graphs(controller: ControlPlane) -> dict[str, float]:
    """Return every sample of the Graph engine, by name and the value of its label: `applies_total applied`."""
    return {
        " ".join([sample.name.removeprefix("kardinal_graph_"), *sample.labels.values()]): sample.value
        for family in await _families(controller)
        for sample in family.samples
        if sample.name.startswith("kardinal_graph_") and not sample.name.endswith("_created")
    }


async def _post(world: World, controller: ControlPlane, body: dict[str, Any]) -> str:
    raw = orjson.dumps(body)
    headers = sign(raw, clock=world.clock)
    timeout = aiohttp.ClientTimeout(total=10)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.post(f"{controller.api_url}/api/v1/bundles", data=raw, headers=headers) as answer,
    ):
        assert answer.status == 201
        return str(orjson.loads(await answer.read())["name"])


async def test_each_of_the_eleven_metrics_is_moved(
    world: World, repository: GitRepository, running: ControlPlane, phase: Reached, state: Reached
) -> None:
    await world.client.create(SECRET, webhook_secret())
    await world.apply(
        pipeline(
            repository,
            environments=[
                environment(DEV, health={"timeout": "3s"}, onHealthFailure="rollback"),
                environment(PROD, approval="pr-review"),
            ],
        ),
        gate("soak", "bundle.upstreamSoakMinutes >= 0.03", namespace=POLICIES),
    )
    await world.settle()
    before = await _scrape(running)
    name = await _post(
        world,
        running,
        {"namespace": TEAM, "pipeline": "my-app", "artifacts": {"images": [{"reference": f"{IMAGE}:1.1.0"}]}},
    )
    await world.wait_for(POLICY_GATE, f"{name}-{PROD}-soak", lambda obj: obj.get("status", {}).get("ready") is False)
    step = await state(name, PROD, "WaitingForMerge")
    await merge_pull_request(world, repository, step["status"]["pullRequest"]["number"])
    await phase(name, "Verified")

    async def rolled_back() -> bool:
        return any("rollback" in each["spec"].get("intent", {}) for each in await world.objects(BUNDLE))

    await world.apply(bundle("broken", tag="2-broken"))
    await phase("broken", "Failed")
    await world.until(rolled_back)
    await world.settle()
    after = await _scrape(running)
    still = {metric for metric in COUNTERS if after.get(metric, 0) <= before.get(metric, 0)}
    still |= {metric for metric in HISTOGRAMS if after.get(f"{metric}_count", 0) <= before.get(f"{metric}_count", 0)}
    assert not still


async def test_metrics_of_graphs_count_what_a_promotion_makes_of_its_nodes(
    world: World, repository: GitRepository, running: ControlPlane, phase: Reached
) -> None:
    before = await _of_graphs(running)
    await world.apply(
        gate("soak", "bundle.upstreamSoakMinutes >= 0.03", namespace=POLICIES),
        pipeline(repository, environments=[environment(DEV), environment(PROD)]),
        bundle("b1"),
    )
    await phase("b1", "Verified")
    await world.settle()
    after = await _of_graphs(running)
    # No label is chosen by a user: a promotion adds no series.
    assert after.keys() == before.keys()
    assert {sample for sample, value in before.items() if value} == set()
    assert (after["applies_total applied"], after["nodes Ready"]) == (3, 5)
    assert after["compiles_total accepted"] == after["compile_seconds_count"] == 1
    assert after["passes_total"] == after["cel_eval_seconds_count"]
    assert after["cel_eval_seconds_sum"] > 0
    moved = ["node_evaluations_total Ready", "node_evaluations_total Pending"]
    moved += [f"node_skips_total {layer}" for layer in ("input", "gate", "apply")]
    assert [sample for sample in moved if not after[sample]] == []
