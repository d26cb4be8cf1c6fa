"""Build kustomize, helm and ytt from source: the real renderers that our edits and supply chains are tested with.

    python -m hack.renderers.assets

`go.mod` beside this file pins the versions. A build takes some two minutes, and is cached as in `hack.kube.assets`.
Without a build, programs on PATH are used.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from hack.kube.assets import Module, built, obtain, reported

__all__ = ["RENDERERS", "find"]

RENDERERS = Module(name="renderers", binaries={"kustomize": "kustomize", "helm": "helm", "ytt": "ytt"})


def find(name: str) -> Path | None:
    """Return the program from the build, else from PATH; None if there is neither."""
    if built(RENDERERS):
        return obtain(RENDERERS) / name
    found = shutil.which(name)
    return Path(found) if found else None


def main() -> int:
    return reported(lambda: obtain(RENDERERS))


if __name__ == "__main__":
    sys.exit(main())
