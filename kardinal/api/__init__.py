"""The custom resources: the only definition of their fields."""

from kardinal.api.resource import ResourceType

__all__ = ["ResourceType"]
