"""The source of a configuration, as the Pipeline names it and a Bundle chooses the commit."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.promotion.api.bundle import ConfigurationCommit
from kardinal.promotion.api.pipeline import Git, Update
from kardinal.promotion.steps.config_source import ConfigMergeConfig, source_of


@pytest.mark.parametrize(
    ("own", "repository", "secret"),
    [
        ("https://git.example.com/a", "https://git.example.com/b", "own"),
        ("https://git.example.com/a", "https://git.example.com:8443/b", None),
        ("https://git.example.com/a", "http://git.example.com/b", None),
        ("http://git.internal/a", "http://git.internal/b", "own"),
        ("ssh://git@git.example.com/a", "git@git.example.com:b", "own"),
        ("file:///a", "file:///b", None),
    ],
)
def test_the_secret_of_the_pipeline_is_for_its_own_host(own: str, repository: str, secret: str | None) -> None:
    """Which hosts http may be spoken to is the word of the operator, and is asked where a repository is opened."""
    git = Git.model_validate({"url": own, "secretRef": {"name": "own"}})
    update: dict[str, Any] = {"config": {"repository": repository}}
    commit = ConfigurationCommit(repository=repository, sha="0" * 40)
    found = source_of(git, Update.model_validate(update), commit, ConfigMergeConfig())
    assert found.secret == secret
