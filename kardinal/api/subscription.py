"""Subscription: a source that makes Bundles by itself. This version stores it and does not run it."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kardinal.api.base import Duration, Model, Name, RelativePath, Resource, ShortText, Status, Url
from kardinal.objects import SUBSCRIPTION, ResourceType

__all__ = [
    "SUBSCRIPTION",
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
    constraint: ShortText | None = None
    interval: Duration = timedelta(minutes=5)


class GitSource(Model):
    """New commits of a branch, of one path when given."""

    repository: Url
    branch: Annotated[str, Field(min_length=1, max_length=244)] = "main"
    path: RelativePath | None = None
    interval: Duration = timedelta(minutes=5)


class SubscriptionSource(Model):
    type: Literal["image", "gitCommit"]
    image: ImageSource | None = None
    git_commit: GitSource | None = None


class SubscriptionSpec(Model):
    pipeline: Name
    source: SubscriptionSource


class SubscriptionStatus(Status):
    """Conditions: Ready."""


class Subscription(Resource):
    resource: ClassVar[ResourceType] = SUBSCRIPTION

    spec: SubscriptionSpec
    status: SubscriptionStatus = Field(default_factory=SubscriptionStatus)
