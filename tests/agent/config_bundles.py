"""Bundles of type `config` and `mixed`, and repositories with the commits that they bring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kardinal.objects import JsonObject
from kardinal.promotion.api import names
from tests.agent.promotion_steps import promotion_step
from tests.support.names import DEV
from tests.support.objects import bundle
from tests.support.repository import GitRepository, create_repository

__all__ = ["LIMITS", "config_bundle", "config_repository", "config_step"]

LIMITS = "cpu: 1\nmemory: 1Gi\nreplicas: 2\n"


def config_repository(tmp_path: Path, files: dict[str, str] | None = None) -> GitRepository:
    """Return a configuration repository with one commit."""
    return create_repository(tmp_path / "config.git", files or {"limits.yaml": LIMITS})


def config_bundle(name: str, repository: GitRepository, sha: str, *, path: str | None = None) -> JsonObject:
    commit = {"repository": repository.url, "sha": sha, "message": "Raise the limits"}
    return bundle(name, type="config", artifacts={"gitCommit": commit | ({"path": path} if path else {})})


def config_step(
    repository: GitRepository, source: GitRepository, /, *, bundle: str, environment: str = DEV, **fields: Any
) -> JsonObject:
    """Return a PromotionStep that takes configuration from `source`; `fields` are those of `update.config`."""
    uses = ["git-clone", "config-merge", "git-commit", "git-push", "health-check"]
    return promotion_step(
        repository,
        environment,
        bundle=bundle,
        name=names.step_name(bundle, environment),
        steps=[{"uses": name} for name in uses],
        update={"config": {"repository": source.url, **fields}},
    )
