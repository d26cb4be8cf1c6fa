"""Argo CD, built from source: a real one to judge.

    python -m hack.argocd.assets [--can | --built]

`go.mod` beside this file pins the version, with the replace lines of Argo CD's own go.mod, which Go reads in the main
module alone. The build takes minutes and is kept as those of `hack.kube.assets` are; beside the program are its
CustomResourceDefinitions. One program is all of Argo CD's: `ARGOCD_BINARY_NAME` says which one it is to be. Its Redis
is that of the distribution.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from hack.kube.assets import Module, built, command

__all__ = ["ARGO_CD", "DEFINITIONS", "missing", "redis_server"]

DEFINITIONS = ("application-crd.yaml", "appproject-crd.yaml")
"""The files of its definitions of kinds."""

ARGO_CD = Module(
    name="argocd",
    binaries={"cmd": "argocd"},
    files={name: f"manifests/crds/{name}" for name in DEFINITIONS},
    source="github.com/argoproj/argo-cd/v3",
)


def redis_server() -> Path | None:
    """Return the Redis of this machine."""
    found = shutil.which("redis-server")
    return Path(found) if found else None


def missing() -> str | None:
    """Return what keeps Argo CD from running here, and what to do about it; None where nothing does."""
    if not built(ARGO_CD):
        return "Argo CD is not built: run `make test-gitops`"
    if redis_server() is None:
        return "Argo CD needs redis-server: `apt-get install redis-server`"
    return None


def main() -> int:
    return command(ARGO_CD, program="hack.argocd.assets")


if __name__ == "__main__":
    sys.exit(main())
