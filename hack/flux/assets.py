"""Flux's kustomize-controller, built from source: a real controller to judge.

    python -m hack.flux.assets [--can | --built]

`go.mod` beside this file pins the version, with the replace lines of the controller's own go.mod, which Go reads in the
main module alone. The build takes minutes and is kept as those of `hack.kube.assets` are; beside the program is its
CustomResourceDefinition.
"""

from __future__ import annotations

import sys

from hack.kube.assets import Module, command

__all__ = ["DEFINITION", "FLUX"]

DEFINITION = "kustomizations.yaml"
"""The name under which the definition of Kustomizations is kept."""

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
