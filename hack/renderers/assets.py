"""kustomize and helm, built from source: the real renderers that edits are compared with.

    python -m hack.renderers.assets

`go.mod` beside this file pins the versions. The build takes some two minutes and is kept as those of `hack.kube.assets`
are. Programs on PATH are used instead where nothing is built.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from hack.kube.assets import Module, built, obtain, reported

__all__ = ["RENDERERS", "find"]

RENDERERS = Module(name="renderers", binaries={"kustomize": "kustomize", "helm": "helm"})


def find(name: str) -> Path | None:
    """Return the program that was built, else the one on PATH."""
    if built(RENDERERS):
        return obtain(RENDERERS) / name
    found = shutil.which(name)
    return Path(found) if found else None


def main() -> int:
    return reported(lambda: obtain(RENDERERS))


if __name__ == "__main__":
    sys.exit(main())
