"""The sample repository that promotions are tested on."""

from __future__ import annotations

from pathlib import Path

from tests.support.names import PROD
from tests.support.repository import Commit, GitRepository, create_repository, sample_files


def test_the_sample_has_an_overlay_per_environment(repository: GitRepository) -> None:
    assert repository.branches() == ["main"]
    assert 'newTag: "1.0.0"' in repository.read(f"environments/{PROD}/kustomization.yaml")
    assert repository.url.startswith("file:///")


def test_a_commit_keeps_what_was_there_and_shows_its_trailers(repository: GitRepository) -> None:
    first = repository.head()
    made = repository.commit({"notes.txt": "müde\n"}, message="Note\n\nKardinal-Environment: dev\nKardinal-Step: x\n")

    assert repository.read("notes.txt") == "müde\n"
    assert repository.read("base/kustomization.yaml")
    assert [commit.sha for commit in repository.commits()] == [made, first]
    trailers = {"Kardinal-Environment": "dev", "Kardinal-Step": "x"}
    assert repository.promotions("dev") == [Commit(made, "Note", trailers)]
    assert repository.promotions("prod") == []


def test_a_repository_can_have_other_environments(tmp_path: Path) -> None:
    repository = create_repository(tmp_path / "other.git", sample_files(["qa"], application="shop"), branch="live")
    assert repository.branches() == ["live"]
    assert "name: shop\n" in repository.read("base/deployment.yaml", branch="live")
    assert repository.read("environments/qa/kustomization.yaml", branch="live")
