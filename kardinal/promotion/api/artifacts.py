"""Find the problems of the artifacts of a Bundle, before they are used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from kardinal.objects.image_reference import ImageReference, ImageReferenceError
from kardinal.promotion.api.bundle import Artifacts, BundleType, ConfigurationCommit
from kardinal.promotion.api.chart import chart_problems
from kardinal.promotion.api.image import image_problems, promoted_image
from kardinal.tree.repository_url import InvalidRepositoryURL, repository_key

__all__ = ["ArtifactProblem", "artifact_problems"]

_FULL_COMMIT = re.compile(r"[0-9a-f]{40}")


class ArtifactProblem(NamedTuple):
    """One problem that the author of a Bundle can fix. `field` is relative to the spec of the Bundle."""

    field: str
    reason: str
    message: str
    remedy: str = ""


def artifact_problems(kind: BundleType, artifacts: Artifacts) -> Iterator[ArtifactProblem]:
    """Yield the problems of artifacts that do not fit the type of the Bundle or cannot be promoted."""
    versions = bool(artifacts.images or artifacts.charts)
    if kind != "config" and not versions:
        yield ArtifactProblem(
            "artifacts.images", "NoArtifacts", "there is nothing to promote", "name at least one image"
        )
    if kind == "config" and versions:
        field = "artifacts.images" if artifacts.images else "artifacts.charts"
        message = "a Bundle of type config brings a commit, and these would not be promoted"
        yield ArtifactProblem(field, "NotOfThisType", message, "use type: mixed")
    if kind != "image" and artifacts.git_commit is None:
        message = f"a Bundle of type {kind} brings a commit"
        yield ArtifactProblem("artifacts.gitCommit", "NoArtifacts", message, "name repository and sha")
    if kind == "image" and artifacts.git_commit is not None:
        message = "a Bundle of type image brings no commit, and this one would not be promoted"
        yield ArtifactProblem("artifacts.gitCommit", "NotOfThisType", message, "use type: mixed, or config")
    for field, message in image_problems(artifacts):
        yield ArtifactProblem(field, "InvalidImage", message)
    yield from _two_versions(artifacts)
    for field, message in chart_problems(artifacts.charts):
        yield ArtifactProblem(field, "InvalidChart", message)
    if artifacts.git_commit is not None:
        yield from _commit_problems(artifacts.git_commit)


def _two_versions(artifacts: Artifacts) -> Iterator[ArtifactProblem]:
    """Yield each image that is listed with two versions, of which an environment can run only one."""
    first: dict[str, tuple[int, ImageReference]] = {}
    for index, image in enumerate(artifacts.images):
        try:
            found = promoted_image(image)
        except ImageReferenceError:
            continue
        before, other = first.setdefault(found.canonical, (index, found))
        if (found.tag, found.digest) != (other.tag, other.digest):
            message = f"{found.repository} is there as {other.version} (images[{before}]) and as {found.version}"
            yield ArtifactProblem(f"artifacts.images[{index}]", "TwoVersions", message, "name one version of an image")


def _commit_problems(commit: ConfigurationCommit) -> Iterator[ArtifactProblem]:
    if not _FULL_COMMIT.fullmatch(commit.sha):
        message = f"{commit.sha} is the beginning of an id, which another commit may have as well"
        yield ArtifactProblem("artifacts.gitCommit.sha", "InvalidCommit", message, "write all 40 digits")
    try:
        repository_key(commit.repository)
    except InvalidRepositoryURL as error:
        yield ArtifactProblem("artifacts.gitCommit.repository", error.name, error.message)
