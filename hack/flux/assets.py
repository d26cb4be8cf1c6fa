"""Build Flux's kustomize-controller from source, for tests of its health adapter on the real program.

    python -m hack.flux.assets [--can | --built]

`go.mod` beside this file pins the version. It repeats the replace lines of the controller's own go.mod, because Go
applies these only in the main module. A build takes minutes, and is cached as in `hack.kube.assets`. Its
CustomResourceDefinition is kept beside the program.
"""

from __future__ import annotations

import sys

from hack.kube.assets import Module, command

__all__ = ["DEFINITION", "FLUX"]

DEFINITION = "kustomizations.yaml"
"""The name of the file with the CustomResourceDefinition of Kustomizations."""

FLUX = Module(
    name="flux",
    binaries={"kustomize-controller": "kustomize-controller"},
    files={DEFINITION: "config/crd/bases/kustomize.toolkit.fluxcd.io_kustomizations.yaml"},
    source="github.com/fluxcd/kustomize-controller",
)


def main() -> int:
    return command(FLUX, program="hack.flux.assets")


if __name__ == "__main__":
    sys.exit(main())
