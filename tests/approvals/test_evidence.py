"""The names of approvers stand in the pull request, in `kardinal explain` and in the evidence of the Bundle."""

from __future__ import annotations

from datetime import timedelta

import aiohttp
import pytest

from kardinal.objects import JsonObject
from kardinal.promotion.api import Bundle
from kardinal.promotion.api.evidence import GateResult
from kardinal.promotion.kinds import BUNDLE, PROMOTION_STEP
from kardinal.promotion.policy.approvals import approvals_of
from kardinal.promotion.policy.context import GateContext
from kardinal.promotion.policy.evaluate import evaluate
from kardinal.promotion.steps.pull_request_text import PullRequestFacts, body
from tests.approvals.conftest import GATE, SIGNED_OFF, Desk, user_of
from tests.approvals.test_approvals import NOW, external, stored
from tests.cli.in_process import InProcess, cli
from tests.support import objects
from tests.support.identities import RESOURCES, documents_of
from tests.support.names import DEV, POLICIES
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_controller, start_simulator
from tests.support.repository import GitRepository
from tests.support.reviewer import merge_pull_request, open_pull_requests
from tests.support.world import World

__all__ = ["cli"]


async def test_approver_is_in_pull_request_explanation_and_evidence(
    world: World, repository: GitRepository, cli: InProcess
) -> None:
    for role in documents_of("roles.yaml"):
        await world.client.apply(RESOURCES[role["kind"]], role, field_manager="test", force=True)
    controller = await start_controller(world)
    await start_simulator(world)
    await world.apply(
        pipeline(repository, environments=[environment(DEV, approval="pr-review")]),
        gate("signoff", SIGNED_OFF, applies_to=DEV, namespace=POLICIES),
    )
    await world.settle()
    [made] = await world.apply(bundle("app-1"))
    async with aiohttp.ClientSession() as session:
        desk = Desk(world, controller, session, made)
        await desk.closed()
        assert (await desk.post(await desk.approver()))[0] == 201
        await desk.opened()
    await world.wait_for(
        PROMOTION_STEP, f"app-1-{DEV}", lambda step: step.get("status", {}).get("state") == "WaitingForMerge"
    )

    [proposed] = await open_pull_requests(world, repository)
    row = next(line for line in proposed.body.splitlines() if "signoff" in line)
    assert "PASS" in row
    assert "dana" in row
    shown = await cli("explain", "my-app", "--env", DEV)
    assert f"approvals = {user_of('dana')}" in shown

    await merge_pull_request(world, repository, proposed.number)

    def verified(obj: JsonObject) -> bool:
        return bool(obj.get("status", {}).get("phase") == "Verified")

    ended = await world.wait_for(BUNDLE, "app-1", verified, within=timedelta(minutes=30))
    [result] = ended["status"]["environments"][DEV]["evidence"]["policyGates"]
    assert (result["name"], result["result"]) == ("signoff", "pass")
    assert result["reason"] == f"approvals = {user_of('dana')}"


@pytest.mark.parametrize(
    "text", ["[x](https://evil.example.com)", "a | b", "<img src=x>", "@acme/admins", "Fixes #12", "a\u202eb", "`x`"]
)
def test_markdown_of_an_answer_stays_in_its_cell(text: str) -> None:
    found = approvals_of(
        [external(reason=text), stored("b", approver=text)],
        uid="u-1",
        environment=DEV,
        gate=GATE,
        counts=lambda _: True,
    )
    context = GateContext(Bundle.model_validate(objects.bundle("app-1")), DEV, "auto", approvals=found)
    expression = 'externalApproval["change"].reason != "" && approvals.size() == 1'
    answer = evaluate(expression, context, now=NOW)
    assert answer.ready, answer.reason

    written = body(
        PullRequestFacts(
            pipeline="my-app",
            environment=DEV,
            bundle=context.bundle,
            gates=[GateResult(name="signoff", scope="org", result="pass", reason=answer.reason)],
            metrics={},
            changes={},
            diff=None,
            follows=False,
            merged_by_agent=False,
            now=NOW,
            soaks={},
        )
    )

    row = next(line for line in written.splitlines() if "signoff" in line)
    assert text not in row
    assert row.count(" | ") == 3, "the table has four columns"
