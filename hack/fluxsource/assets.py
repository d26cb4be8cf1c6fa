"""Build Flux's source-controller from source, for a test of a supply chain whose source is a real GitRepository.

    python -m hack.fluxsource.assets [--can | --built]

`go.mod` beside this file pins the version, and repeats the replace line of the controller's own go.mod, because Go
applies these only in the main module. It is a module of its own, so that the versions that it needs change nothing in
the kustomize-controller of `hack.flux`. A build takes minutes, and is cached as in `hack.kube.assets`. Its
CustomResourceDefinitions are kept beside the program.
"""

from __future__ import annotations

import sys

from hack.kube.assets import Module, command

__all__ = ["DEFINITIONS", "FLUX_SOURCE"]

DEFINITIONS = "definitions"
"""The name of the directory with the CustomResourceDefinitions."""

FLUX_SOURCE = Module(
    name="fluxsource",
    binaries={"source-controller": "source-controller"},
    files={DEFINITIONS: "config/crd/bases"},
    source="github.com/fluxcd/source-controller",
)


def main() -> int:
    return command(FLUX_SOURCE, program="hack.fluxsource.assets")


if __name__ == "__main__":
    sys.exit(main())
