"""Objects as real controllers wrote them at named moments: Flux 1.9.5 and Argo CD 3.1.16 on a real API server."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kardinal.objects import JsonObject

__all__ = ["Moment", "argo_cd", "flux"]

_RECORDINGS = "reference/health-captures"


@dataclass(frozen=True)
class Moment:
    """The object of a tool at one moment, and the Deployment that it applied."""

    name: str
    found: JsonObject
    deployment: JsonObject | None


@cache
def flux() -> tuple[Moment, ...]:
    """Return the moments of a Kustomization in their order; its inventory was not recorded."""
    entry = {"id": "lane-flux_hello_apps_Deployment", "v": "v1"}
    moments = []
    for name, snapshot in _snapshots("flux-snapshots.json"):
        found = snapshot["kustomization"]
        found["status"]["inventory"] = {"entries": [entry] if "deployment" in snapshot else []}
        moments.append(Moment(name, found, snapshot.get("deployment")))
    return tuple(moments)


@cache
def argo_cd() -> tuple[Moment, ...]:
    """Return the moments of an Application in their order; of some only the parts that moved were recorded."""
    moments = []
    whole: JsonObject = {}
    for name, snapshot in _snapshots("argo-snapshots.json"):
        if "application" in snapshot:
            found = whole = snapshot["application"]
        else:
            metadata = {**whole["metadata"], "annotations": snapshot["annotations"]}
            found = {**whole, "metadata": metadata, "status": snapshot["status"], "operation": snapshot["operation"]}
        moments.append(Moment(name, found, snapshot.get("deployment")))
    return tuple(moments)


def _snapshots(name: str) -> list[tuple[str, Any]]:
    beside = Path(__file__).parents[3] / "shared"
    path = Path(os.environ.get("KARDINAL_SHARED", beside)) / _RECORDINGS / name
    if not path.exists():
        pytest.skip(f"the recordings are not on this machine: {path}")
    return sorted(json.loads(path.read_text()).items(), key=lambda each: each[1].get("time") or each[1]["t"])
