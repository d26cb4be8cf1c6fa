"""The version that an environment runs, by proof: its last landing, if the Bundle of that is Verified there (pure).

The proof is the status of the Bundles of its Pipeline, which only the controller writes. Labels, and what stands in
Git, prove nothing. While a change has landed that is not Verified yet, no version is proven.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kardinal.objects import JsonObject
from kardinal.promotion.api.bundle import BundleSpec
from kardinal.promotion.api.image import bundle_version
from kardinal.promotion.translation.rollback import past_of

__all__ = ["Running", "running"]


@dataclass(frozen=True, slots=True)
class Running:
    """The proven version, since when it is Verified (RFC 3339), and whether it is still healthy."""

    version: str
    healthy: bool
    verified_at: str

    def to_json(self) -> dict[str, Any]:
        return {"version": self.version, "healthy": self.healthy, "verifiedAt": self.verified_at}


def running(bundles: Iterable[JsonObject], environment: str) -> Running | str:
    """Return what an environment runs, from the Bundles of its Pipeline; or the reason why that is not proven."""
    runs = past_of(bundles, environment).runs
    if runs is None:
        return f"nothing has been promoted to {environment} yet"
    entry = runs.bundle["status"]["environments"][environment]
    if not runs.verified or entry["state"] != "Verified":
        return f"{runs.name} is not Verified in {environment}"
    artifacts = BundleSpec.model_validate(runs.bundle["spec"]).artifacts
    return Running(bundle_version(artifacts), entry.get("healthy") is not False, entry["verifiedAt"])
