"""`kardinal init`: a Pipeline from a few lines that promotes, or a clear no before anything is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Cli
from tests.cli.in_process import InProcess

LINES = """\
app: my-app
image: ghcr.io/acme/my-app
git:
  url: https://github.com/acme/gitops
  secret: github-token
environments: [dev, staging, prod]
prodApproval: pr-review
"""


def without_a_cluster(directory: Path) -> Cli:
    """Return the command where there is neither a cluster nor a kubeconfig."""
    cli = InProcess(directory / "none", directory)
    del cli.environment["KUBECONFIG"]
    return cli


async def printed(directory: Path, lines: str, *options: str) -> Any:
    (directory / "kardinal.yaml").write_text(lines)
    cli = without_a_cluster(directory)
    document = await cli("init", "-o", "yaml", *options)
    (directory / "pipeline.yaml").write_text(document)
    assert await cli("lint", "-f", "pipeline.yaml") == "1 resource is fine\n"
    return yaml.safe_load(document)


async def refused(directory: Path, lines: str) -> str:
    (directory / "kardinal.yaml").write_text(lines)
    done = await without_a_cluster(directory).attempt("init", "-o", "yaml")
    assert (done.code, done.out) == (1, "")
    return done.err


async def test_the_provider_is_that_of_the_host_and_no_server_is_needed_to_print(tmp_path: Path) -> None:
    made = await printed(tmp_path, LINES)
    assert made["metadata"] == {"name": "my-app", "namespace": "default"}
    assert made["spec"]["git"]["provider"] == "github"
    assert [one["approval"] for one in made["spec"]["environments"]] == ["auto", "auto", "pr-review"]
    assert (await printed(tmp_path, LINES, "-n", "team"))["metadata"]["namespace"] == "team"


@pytest.mark.parametrize(
    ("url", "provider"),
    [
        ("git@github.com:acme/gitops.git", "github"),
        ("https://gitlab.com/acme/gitops", "gitlab"),
        ("ssh://git@codeberg.org/acme/gitops", "forgejo"),
    ],
)
async def test_the_host_tells_the_provider_however_the_address_is_written(
    tmp_path: Path, url: str, provider: str
) -> None:
    made = await printed(tmp_path, LINES.replace("https://github.com/acme/gitops", url))
    assert made["spec"]["git"]["provider"] == provider


async def test_a_repository_on_this_machine_has_its_pull_requests_there(tmp_path: Path) -> None:
    local = LINES.replace("https://github.com/acme/gitops", "file:///srv/gitops.git").replace(
        "  secret: github-token\n", ""
    )
    assert (await printed(tmp_path, local))["spec"]["git"]["provider"] == "local"


async def test_a_host_whose_name_tells_nothing_needs_its_provider(tmp_path: Path) -> None:
    unknown = LINES.replace("github.com", "git.example.com")
    error = await refused(tmp_path, unknown)
    assert "git.provider: the name of the host does not tell it" in error
    assert "prodApproval: auto" in error
    assert (await printed(tmp_path, unknown.replace("  secret", "  provider: gitea\n  secret")))["spec"]["git"][
        "provider"
    ] == "gitea"
    pushed = await printed(tmp_path, unknown.replace("pr-review", "auto"))
    assert pushed["spec"]["git"]["provider"] == "git"
    assert {one["approval"] for one in pushed["spec"]["environments"]} == {"auto"}


async def test_a_pipeline_that_no_bundle_could_go_through_is_not_made(tmp_path: Path) -> None:
    error = await refused(tmp_path, LINES.replace("  secret", "  provider: git\n  secret"))
    assert "kardinal.yaml describes a Pipeline that cannot promote" in error
    assert "spec.environments[2].approval: " in error
    ftp = LINES.replace("https://github.com", "ftp://github.com").replace("  secret", "  provider: github\n  secret")
    assert "spec.git.url" in await refused(tmp_path, ftp)


async def test_possible_production_is_reviewed_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    lines = LINES.replace("prodApproval: pr-review\n", "").replace(
        "[dev, staging, prod]", "[dev, pre-prod, nonprod, prod-eu, production-canary, live, europe, qa]"
    )
    made = await printed(tmp_path, lines)
    reviewed = [one["name"] for one in made["spec"]["environments"] if one["approval"] == "pr-review"]
    assert reviewed == ["prod-eu", "production-canary", "live", "europe", "qa"]
