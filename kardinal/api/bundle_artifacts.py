"""The artifacts of a Bundle, and where they come from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kardinal.api.base import Digest, Model, RelativePath, ShortText, Text, Time, Url

__all__ = ["ArtifactKind", "Artifacts", "Chart", "GitCommit", "Image", "Provenance", "ResolvedImage"]

ArtifactKind = Literal["images", "charts", "gitCommit"]


class Image(Model):
    """A container image: `reference` is `repository[:tag][@digest]`, and `digest` wins over the one in it."""

    name: Annotated[str, Field(max_length=253)] = ""
    """Name of the artifact."""
    reference: Annotated[str, Field(min_length=1, max_length=512)]
    """The image, as `repository[:tag][@digest]`."""
    digest: Digest | None = None
    """Digest of the image; it wins over the one in `reference`."""


class ResolvedImage(Model):
    """An image that a Bundle names by its tag alone, and the digest that the tag had."""

    reference: Annotated[str, Field(min_length=1, max_length=512)]
    """The image, as `repository:tag`."""
    digest: Digest | None = None
    """Digest that the registry had for the tag; absent where it has told none."""
    resolved_at: Time
    """The moment at which the registry was asked when the Bundle started, or first gave an answer."""
    moved_to: Digest | None = None
    """Another digest that the tag had when it was looked up again."""
    message: Text | None = None
    """The reason why the registry gave no answer when it was asked last."""


class GitCommit(Model):
    """A commit of a configuration repository."""

    repository: Url
    """Repository of the commit."""
    sha: Annotated[str, Field(min_length=7, max_length=64, pattern=r"^[0-9a-f]+$")]
    """Id of the commit, with all 40 digits."""
    message: Text = ""
    """Message of the commit, for people."""
    path: RelativePath | None = None
    """Directory in the commit that is promoted."""


class Chart(Model):
    """A version of a Helm chart."""

    repository: Url
    """Repository of the chart."""
    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the chart."""
    version: Annotated[str, Field(min_length=1, max_length=128)]
    """Version of the chart."""
    digest: Digest | None = None
    """Digest of the chart."""


class Artifacts(Model):
    """The versions that a Bundle moves."""

    images: Annotated[tuple[Image, ...], Field(max_length=64)] = ()
    """Container images."""
    charts: Annotated[tuple[Chart, ...], Field(max_length=64)] = ()
    """Helm charts."""
    git_commit: GitCommit | None = None
    """A commit of a configuration, for types `config` and `mixed`."""

    @property
    def kinds(self) -> tuple[ArtifactKind, ...]:
        """Return the kinds of artifacts that are there."""
        there: dict[ArtifactKind, object] = {
            "images": self.images,
            "charts": self.charts,
            "gitCommit": self.git_commit,
        }
        return tuple(kind for kind, found in there.items() if found)


class Provenance(Model):
    """The origin of the artifacts: commit, CI run and author."""

    commit_sha: Annotated[str | None, Field(alias="commitSHA", max_length=64)] = None
    """Commit that the artifacts were built from."""
    ci_run_url: Annotated[str | None, Field(alias="ciRunURL", max_length=2048)] = None
    """URL of the CI run that built them."""
    author: ShortText | None = None
    """Author of the change."""
    # An API server takes a year 0, which Python does not have: one such Bundle would keep its siblings from being read.
    build_timestamp: Annotated[Time | None, Field(json_schema_extra={"pattern": "^[1-9][0-9]{3}-"})] = None
    """The moment at which they were built."""
