"""A Bundle is held or fails while a person watches the page, and goes on: by time, and by a button."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio

from kardinal.objects import JsonObject
from kardinal.promotion.kinds import PIPELINE
from tests.browser.sample import NAMESPACE, POLICIES, apply, create, make_sample, reaches
from tests.browser.screen import Screen
from tests.resilience.processes import Local
from tests.support.objects import gate, pipeline
from tests.support.repository import GitRepository

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.local_only("the page that `kardinal local up` serves"),
    pytest.mark.timeout(240),
]

LATE = 10
"""Seconds of real time that a machine may be late with what it shows when other tests keep it busy."""

NOTE_WHEN_OPEN = """
name => {
  const look = () => {
    const node = [...document.querySelectorAll(".gate-box")].find((each) => each.textContent.includes(name));
    if (window.openedAt || !node?.textContent.includes("PASS")) return;
    window.openedAt = Date.now();
  };
  window.openedAt = undefined;
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
  look();
}
"""
"""Notes the moment at which the page shows that a gate is open."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def repository(local: Local, tmp_path_factory: pytest.TempPathFactory) -> GitRepository:
    """Return the repository of the sample."""
    directory = tmp_path_factory.mktemp("made") / "sample"
    await make_sample(local, directory)
    return GitRepository(directory / "gitops.git")


def pipeline_of(repository: GitRepository, name: str, environments: Sequence[str]) -> JsonObject:
    """Return one more Pipeline on the repository, for one story."""
    return pipeline(repository, name=name, environments=environments, namespace=NAMESPACE)


async def press(screen: Screen, label: str) -> None:
    """Press a button and, in the dialog that it opens, the button that does it; axe finds nothing in the dialog."""
    await screen.page.get_by_role("button", name=f"{label} …").first.click()
    await screen.dialog().get_by_role("button", name=label, exact=True).wait_for()
    assert await screen.violations() == []
    await screen.dialog().get_by_role("button", name=label, exact=True).click()
    await screen.dialog().get_by_role("button", name="Close", exact=True).last.click()


def window(opens: datetime) -> JsonObject:
    """Return a gate that opens at a moment; between two rechecks only the moment itself can open it."""
    expression = f'now() >= timestamp("{opens:%Y-%m-%dT%H:%M:%SZ}")'
    selects = {"pipelines": ["timed"]}
    return gate("window", expression, applies_to=None, namespace=POLICIES, match=selects, recheckInterval="1h")


async def test_a_gate_opens_at_its_second(local: Local, screen: Screen, repository: GitRepository) -> None:
    await apply(local, pipeline_of(repository, "timed", ["dev"]), window(datetime(2040, 1, 1, tzinfo=UTC)))
    await create(local, "6.12.0", pipeline="timed")
    await screen.visit(f"/pipelines/{NAMESPACE}/timed")
    await screen.node("window").click()
    await screen.sees("FAIL: ")
    await screen.page.evaluate(NOTE_WHEN_OPEN, "window")

    opens = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=10)
    await apply(local, window(opens))
    await screen.node("window").get_by_text(re.compile(r"^in \d+ s$")).wait_for()
    await screen.sees("PASS: ")
    shown = datetime.fromtimestamp(await screen.page.evaluate("window.openedAt") / 1000, UTC)
    assert opens <= shown < opens + timedelta(seconds=LATE)
    await screen.node("dev").get_by_text("Verified").wait_for()


async def test_a_pipeline_is_paused_and_resumed_by_its_buttons(
    local: Local, screen: Screen, repository: GitRepository
) -> None:
    await apply(local, pipeline_of(repository, "calm", ["dev"]))
    await screen.visit(f"/pipelines/{NAMESPACE}/calm")
    await screen.page.get_by_role("button", name="Pause …").click()
    await screen.dialog().get_by_label("Why").fill("the cluster moves")
    await screen.dialog().get_by_role("button", name="Pause", exact=True).click()
    await screen.dialog().get_by_role("button", name="Close", exact=True).last.click()
    await screen.sees("the cluster moves")
    assert "the cluster moves" in await local.kardinal("status", "calm")
    await create(local, "6.12.0", pipeline="calm")
    await screen.node("dev").get_by_text("6.12.0").first.wait_for()
    await screen.page.get_by_role("link", name="Pipelines", exact=True).click()
    row = screen.page.get_by_role("article").filter(has_text="calm")
    await row.get_by_text("paused", exact=True).wait_for()
    await row.get_by_role("link", name="calm").click()

    await press(screen, "Resume")
    await screen.node("dev").get_by_text("Verified").wait_for()
    assert await screen.page.get_by_text("the cluster moves").count() == 0


async def test_a_failed_step_has_its_remedy_and_is_retried(
    local: Local, screen: Screen, repository: GitRepository
) -> None:
    await apply(local, pipeline_of(repository, "failing", ["dev", "qa"]))
    bundle = await create(local, "6.13.0", pipeline="failing")
    await screen.visit("/?need=failed")
    row = screen.page.get_by_role("article").filter(has_text="failing")
    await row.get_by_text("environments/qa: no such directory in the repository").wait_for()
    await row.get_by_role("link", name="qa").click()
    await screen.sees("kardinal retry")
    failed: Any = screen.page.locator(".steps li").filter(has_text="kustomize-set-image")
    await failed.get_by_text("no such directory").wait_for()
    assert await screen.violations() == []

    overlay = repository.read("environments/dev/kustomization.yaml").replace("namespace: dev", "namespace: qa")
    repository.commit({"environments/qa/kustomization.yaml": overlay})
    await press(screen, "Retry")
    await screen.node("qa").get_by_text("Verified").wait_for()
    await reaches(local, bundle, dev="Verified", qa="Verified")


async def test_a_pipeline_that_is_deleted_is_said_to_be_gone(
    local: Local, screen: Screen, repository: GitRepository
) -> None:
    await apply(local, pipeline_of(repository, "passing", ["dev"]))
    await screen.visit(f"/pipelines/{NAMESPACE}/passing")
    await screen.sees("No Bundle has been created yet")
    async with local.client() as client:
        await client.delete(PIPELINE, "passing", NAMESPACE)
    await screen.page.get_by_role("alert").get_by_text("passing").wait_for()
    assert await screen.page.get_by_text("lost since").count() == 0


async def test_a_person_approves_by_the_button_of_a_gate(
    local: Local, screen: Screen, repository: GitRepository
) -> None:
    selects = {"pipelines": ["signed"]}
    signoff = gate("signoff", "approvals.size() > 0", applies_to=None, namespace=POLICIES, match=selects)
    await apply(local, pipeline_of(repository, "signed", ["dev"]), signoff)
    await create(local, "6.12.0", pipeline="signed")
    await screen.visit(f"/pipelines/{NAMESPACE}/signed")
    await screen.node("signoff").click()
    await screen.sees("FAIL: ")
    await press(screen, "Approve")
    await screen.node("signoff").get_by_text("PASS").first.wait_for()
    await screen.page.get_by_role("button", name="Approve …").wait_for(state="detached")
