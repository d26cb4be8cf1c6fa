"""Promotions that read from a second repository or ref, and a repository to read from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kardinal.objects import JsonObject
from tests.agent.promotion_steps import promotion_step
from tests.support.repository import GitRepository, create_repository

__all__ = ["BASES", "copying", "platform_repository", "with_inputs"]

BASES = {
    "bases/web/kustomization.yaml": "resources:\n  - service.yaml\n",
    "bases/web/service.yaml": "kind: Service\nmetadata: {name: one}\n",
    "other/x.yaml": "not asked for\n",
}


def platform_repository(tmp_path: Path) -> GitRepository:
    """Return a repository of bases with one commit."""
    return create_repository(tmp_path / "platform.git", BASES)


def copying(source: str = "bases/web", *, to: str = "base", name: str = "platform") -> JsonObject:
    return {"uses": "copy", "config": {"from": source, "to": to, "input": name}}


def with_inputs(
    repository: GitRepository | str, *steps: JsonObject, provider: str = "local", **spec: Any
) -> JsonObject:
    """Return a PromotionStep whose sequence has `steps` between the clone and the commit."""
    review = ["open-pr", "wait-for-merge"] if spec.get("approval") == "pr-review" else []
    ends = [{"uses": name} for name in ("git-commit", "git-push", *review, "health-check")]
    return promotion_step(repository, steps=[{"uses": "git-clone"}, *steps, *ends], provider=provider, **spec)
