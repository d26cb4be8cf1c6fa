"""Flux's kustomize-controller, built from source: a real controller to judge.

    python -m hack.gitops.assets

`go.mod` beside this file pins the version, with the replace lines of the controller's own go.mod, which Go reads in the
main module alone. The build takes minutes and is kept as those of `hack.kube.assets` are; beside the program is its
CustomResourceDefinition.
"""

from __future__ import annotations

import subprocess
import sys

from hack.kube.assets import AssetsMissing, Module, obtain

__all__ = ["DEFINITION", "FLUX"]

DEFINITION = "kustomizations.yaml"
"""The name under which the definition of Kustomizations is kept."""

FLUX = Module(
    name="gitops",
    binaries={"kustomize-controller": "kustomize-controller"},
    files={DEFINITION: "config/crd/bases/kustomize.toolkit.fluxcd.io_kustomizations.yaml"},
    source="github.com/fluxcd/kustomize-controller",
)


def main() -> int:
    try:
        directory = obtain(FLUX)
    except AssetsMissing as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"{' '.join(map(str, error.cmd))} ended with {error.returncode}", file=sys.stderr)
        return 1
    print(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
