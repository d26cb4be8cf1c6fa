"""Texts that others chose, shown by the page: none of them becomes markup, a link to a script, or a request."""

from __future__ import annotations

from pathlib import Path

import pytest

from kardinal.promotion.kinds import BUNDLE, POLICY_GATE
from tests.browser.sample import NAMESPACE, make_sample
from tests.browser.screen import Screen
from tests.resilience.processes import Local, wait_for
from tests.support.objects import bundle

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.local_only("the page that `kardinal local up` serves"),
    pytest.mark.timeout(240),
]

MARKUP = "<img src=x onerror='window.broken = 1'><script>window.broken = 1</script>"
SCRIPT_URL = "javascript:window.broken=1//https://ci.example.com/1"


async def test_markup_in_texts_and_links_to_scripts_stay_text(local: Local, screen: Screen, tmp_path: Path) -> None:
    await make_sample(local, tmp_path / "sample")
    async with local.client() as client:
        gate = await client.get(POLICY_GATE, "staging-soak", "platform-policies")
        gate["spec"] |= {"message": MARKUP, "expression": f'bundle.version == "{MARKUP}"'}
        await client.apply(
            POLICY_GATE,
            {
                **{name: gate[name] for name in ("apiVersion", "kind", "spec")},
                "metadata": {name: gate["metadata"][name] for name in ("name", "namespace", "labels")},
            },
            field_manager="test",
        )
        provenance = {"author": MARKUP, "commitSHA": "<b>" + "a" * 40, "ciRunURL": SCRIPT_URL}
        made = bundle(
            "hostile",
            image="ghcr.io/acme/podinfo",
            tag="6.12.0",
            pipeline="podinfo",
            namespace=NAMESPACE,
            provenance=provenance,
        )
        await client.create(BUNDLE, made)
        await wait_for(
            client,
            BUNDLE,
            lambda found: "staging" in (found.get("status") or {}).get("environments", {}),
            "hostile",
            namespace=NAMESPACE,
        )

    await screen.page.get_by_text("podinfo", exact=True).click()
    await screen.sees(MARKUP)
    await screen.node("staging-soak").click()
    await screen.sees("bundle.version ==")
    assert await screen.violations() == []
    await screen.page.get_by_role("link", name="Bundles").click()
    await screen.page.get_by_role("link", name="6.12.0").first.click()
    await screen.sees(MARKUP)
    assert await screen.page.locator("a[href^='javascript:'], img[src='x']").count() == 0
    assert await screen.page.evaluate("window.broken") is None
