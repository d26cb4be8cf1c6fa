"""Texts that others chose, shown by the page: none of them becomes markup, a link to a script, or a request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kardinal.promotion.kinds import BUNDLE, POLICY_GATE
from tests.browser.sample import NAMESPACE, POLICIES, make_sample
from tests.browser.screen import Screen
from tests.resilience.processes import Local, wait_for
from tests.support.objects import bundle

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.local_only("the page that `kardinal local up` serves"),
    pytest.mark.timeout(240),
]

CORPUS = (
    "<img src=x onerror='window.broken = 1'>",
    "<script>window.broken = 1</script>",
    '"><svg onload="window.broken = 1">',
    "' autofocus onfocus='window.broken = 1",
    "</code></pre><iframe srcdoc='<script>parent.broken = 1</script>'>",
    "<a href='javascript:window.broken = 1'>here</a>",
    "{{constructor.constructor('window.broken = 1')()}} ${window.broken = 1}",
)
TEXT = " ".join(CORPUS)
SCRIPT_URL = "javascript:window.broken=1//https://ci.example.com/1"

BECAME_MARKUP = ", ".join(
    ("a[href^='javascript:']", "img", "iframe", "svg[onload]", "[onfocus]", "[onerror]", "body script")
)
"""The elements that the texts would be, if they were markup. The page itself has none of them."""


async def test_texts_of_others_stay_text_on_every_page(local: Local, screen: Screen, tmp_path: Path) -> None:
    await make_sample(local, tmp_path / "sample")
    async with local.client() as client:
        gate = await client.get(POLICY_GATE, "staging-soak", POLICIES)
        gate["spec"] |= {"message": TEXT, "expression": f"bundle.version == {TEXT!r}"}
        kept = {name: gate["metadata"][name] for name in ("name", "namespace", "labels")}
        applied = {**{name: gate[name] for name in ("apiVersion", "kind", "spec")}, "metadata": kept}
        await client.apply(POLICY_GATE, applied, field_manager="test")
        provenance = {"author": CORPUS[0], "commitSHA": "<b>" + "a" * 40, "ciRunURL": SCRIPT_URL}
        of_podinfo: dict[str, Any] = {"image": "ghcr.io/acme/podinfo", "tag": "6.12.0", "pipeline": "podinfo"}
        made = bundle("hostile", **of_podinfo, namespace=NAMESPACE, provenance=provenance)
        await client.create(BUNDLE, made)
        await wait_for(
            client,
            BUNDLE,
            lambda found: "staging" in (found.get("status") or {}).get("environments", {}),
            "hostile",
            namespace=NAMESPACE,
        )
    await local.kardinal("pause", "podinfo", "--reason", TEXT)

    podinfo = f"/pipelines/{NAMESPACE}/podinfo"
    for path, text in {
        "/": TEXT,
        "/?view=matrix": "6.12.0",
        podinfo: TEXT,
        f"{podinfo}/environments/dev": CORPUS[0],
        f"{podinfo}/environments/prod": TEXT,
        f"{podinfo}/gates/prod/{POLICIES}/staging-soak": "bundle.version ==",
        "/bundles": CORPUS[0],
        f"/bundles/{NAMESPACE}/hostile": CORPUS[0],
        f"/graphs/{NAMESPACE}/hostile": "Accepted",
        f"/yaml/bundle/{NAMESPACE}/hostile": CORPUS[0],
        f"/yaml/policygate/{POLICIES}/staging-soak": "bundle.version ==",
    }.items():
        await screen.visit(path)
        await screen.sees(text)
        assert await screen.page.locator(BECAME_MARKUP).count() == 0, path
        assert await screen.page.evaluate("window.broken") is None, path
