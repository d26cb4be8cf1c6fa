"""Build Argo CD from source, for tests of its health adapter on the real program.

    python -m hack.argocd.assets [--can | --built]

`go.mod` beside this file pins the version. It repeats the replace lines of Argo CD's own go.mod, because Go applies
these only in the main module. A build takes minutes, and is cached as in `hack.kube.assets`; the
CustomResourceDefinitions are kept beside the program. One binary has all programs of Argo CD; the environment variable
`ARGOCD_BINARY_NAME` chooses one. Redis is not built: `redis-server` is taken from PATH.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from hack.kube.assets import Module, built, command

__all__ = ["ARGO_CD", "DEFINITIONS", "missing", "redis_server"]

DEFINITIONS = ("application-crd.yaml", "appproject-crd.yaml")
"""The names of the files with its CustomResourceDefinitions."""

ARGO_CD = Module(
    name="argocd",
    binaries={"cmd": "argocd"},
    files={name: f"manifests/crds/{name}" for name in DEFINITIONS},
    source="github.com/argoproj/argo-cd/v3",
)


def redis_server() -> Path | None:
    """Return the path of `redis-server`; None if it is not installed."""
    found = shutil.which("redis-server")
    return Path(found) if found else None


def missing() -> str | None:
    """Return the reason why Argo CD cannot run on this machine, with the remedy; None if it can."""
    if not built(ARGO_CD):
        return "Argo CD is not built: run `make test-gitops`"
    if redis_server() is None:
        return "Argo CD needs redis-server: `apt-get install redis-server`"
    return None


def main() -> int:
    return command(ARGO_CD, program="hack.argocd.assets")


if __name__ == "__main__":
    sys.exit(main())
