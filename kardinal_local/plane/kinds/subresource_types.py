"""The subresources that kinds have: status, scale, and those of one kind alone."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FINALIZE", "SCALE", "STATUS", "TOKEN", "ScalePaths", "Subresource"]


@dataclass(frozen=True, slots=True)
class Subresource:
    """`group`, `version` and `kind` say what is read and written there; without a kind it is the object itself."""

    name: str
    verbs: tuple[str, ...] = ("get", "patch", "update")
    group: str = ""
    version: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where an object keeps what its scale tells; `selector` is empty where it has none."""

    replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    selector: str = ".spec.selector"


STATUS = Subresource("status")
SCALE = Subresource("scale", group="autoscaling", version="v1", kind="Scale")
FINALIZE = Subresource("finalize", verbs=("update",))
TOKEN = Subresource("token", verbs=("create",), group="authentication.k8s.io", version="v1", kind="TokenRequest")
