"""The guides tell of each state what the adapters say of it, and whether it was seen or read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.health.argocd_cases import CASES
from tests.health.flux_cases import HELM_RELEASE_CASES, KUSTOMIZATION_CASES
from tests.health.rollout_cases import CANARY_CASES, ROLLOUT_CASES
from tests.health.tools import NEW, Case

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
HEAD = ["| state | verdict | kardinal says | |", "|---|---|---|---|"]
VERDICTS = {"healthy": "proved", "progressing": "waits"}


def table(cases: Sequence[Case]) -> list[str]:
    """Return the rows of a guide."""
    return [*HEAD, *map(row, cases)]


def row(case: Case) -> str:
    verdict = VERDICTS.get(case.state, f"failed: `{case.reason}`")
    words = case.words.replace("commit bbbbbbb", "commit 1a2b3c4").replace(NEW, "app:2.0.0")
    words = words.replace("ghcr.io/o/app", "registry/app")
    return f"| {case.name} | {verdict} | {words} | {'seen' if case.seen else 'read'} |"


@pytest.mark.parametrize(
    ("guide", "cases"),
    [
        ("argocd", CASES),
        ("flux", KUSTOMIZATION_CASES),
        ("flux", HELM_RELEASE_CASES),
        ("rollouts", ROLLOUT_CASES),
        ("rollouts", CANARY_CASES),
    ],
    ids=["argocd", "kustomization", "helm_release", "rollout", "canary"],
)
def test_a_guide_has_a_row_for_each_state(guide: str, cases: Sequence[Case]) -> None:
    wanted = "\n".join(table(cases))
    assert f"{wanted}\n\n" in (GUIDES / f"{guide}.md").read_text() + "\n", f"put into docs/guides/{guide}:\n{wanted}"
