"""The artifacts of a Bundle, and their provenance."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kardinal.models.base import Digest, Model, RelativePath, ShortText, Text, Time, Url

__all__ = ["ArtifactKind", "Artifacts", "Chart", "ConfigurationCommit", "Image", "Provenance", "ResolvedImage"]

ArtifactKind = Literal["images", "charts", "gitCommit"]


class Image(Model):
    """A container image: `reference` is `repository[:tag][@digest]`, and `digest` overrides a digest in it."""

    name: Annotated[str, Field(max_length=253)] = ""
    """Name of the artifact."""
    reference: Annotated[str, Field(min_length=1, max_length=512)]
    """The image, as `repository[:tag][@digest]`, for example `ghcr.io/acme/app:1.2.3`."""
    digest: Digest | None = None
    """Digest of the image. It takes precedence over a digest in `reference`."""


class ResolvedImage(Model):
    """An image that a Bundle names by its tag alone, and the digest that the tag had."""

    reference: Annotated[str, Field(min_length=1, max_length=512)]
    """The image, as `repository:tag`."""
    digest: Digest | None = None
    """Digest of the tag in the registry; absent if the registry gave no answer."""
    resolved_at: Time
    """The time at which the registry was asked when the Bundle started, or at which it first gave an answer."""
    moved_to: Digest | None = None
    """Another digest that the tag had when it was looked up again."""
    message: Text | None = None
    """The reason why the registry gave no answer to the last request."""


class ConfigurationCommit(Model):
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
    """The versions that a Bundle promotes."""

    images: Annotated[tuple[Image, ...], Field(max_length=64)] = ()
    """Container images."""
    charts: Annotated[tuple[Chart, ...], Field(max_length=64)] = ()
    """Helm charts."""
    git_commit: ConfigurationCommit | None = None
    """A configuration commit, for types `config` and `mixed`."""

    @property
    def kinds(self) -> tuple[ArtifactKind, ...]:
        """Return the kinds of the artifacts in the Bundle."""
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
    # An API server accepts the year 0, which Python cannot represent. One such Bundle would make the list of Bundles
    # unreadable.
    build_timestamp: Annotated[Time | None, Field(json_schema_extra={"pattern": "^[1-9][0-9]{3}-"})] = None
    """The time at which the artifacts were built."""
