"""Subscription: a source that makes Bundles by itself. This version stores it and does not run it."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kardinal.models.base import Duration, Model, Name, RelativePath, Resource, ShortText, Status, Url
from kardinal.objects import ResourceType
from kardinal.promotion.kinds import SUBSCRIPTION

__all__ = [
    "GitSource",
    "ImageSource",
    "Subscription",
    "SubscriptionSource",
    "SubscriptionSpec",
    "SubscriptionStatus",
]


class ImageSource(Model):
    """New tags of an image repository that satisfy a semantic version constraint."""

    repository: Annotated[str, Field(min_length=1, max_length=512)]
    """Repository of the images."""
    constraint: ShortText | None = None
    """Accepted versions, as a semantic version range."""
    interval: Duration = timedelta(minutes=5)
    """The interval at which the registry is asked. Defaults to 5m."""


class GitSource(Model):
    """New commits of a branch, or of one path in it."""

    repository: Url
    """Repository of the commits."""
    branch: Annotated[str, Field(min_length=1, max_length=244)] = "main"
    """Branch of the commits. Defaults to `main`."""
    path: RelativePath | None = None
    """Directory whose changes count. Defaults to the whole repository."""
    interval: Duration = timedelta(minutes=5)
    """The interval at which the repository is asked. Defaults to 5m."""


class SubscriptionSource(Model):
    type: Literal["image", "gitCommit"]
    """The type of the source: `image` or `gitCommit`."""
    image: ImageSource | None = None
    """For type `image`: the image repository."""
    git_commit: GitSource | None = None
    """For type `gitCommit`: the Git repository."""


class SubscriptionSpec(Model):
    pipeline: Name
    """Name of the Pipeline that gets the Bundles."""
    source: SubscriptionSource
    """The artifacts to look for."""


class SubscriptionStatus(Status):
    """Conditions: Ready."""


class Subscription(Resource):
    resource: ClassVar[ResourceType] = SUBSCRIPTION

    spec: SubscriptionSpec
    """The source and the Pipeline."""
    status: SubscriptionStatus = Field(default_factory=SubscriptionStatus)
    """Conditions."""
