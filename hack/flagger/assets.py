"""Build Flagger from source, for tests of its health adapter on the real program.

    python -m hack.flagger.assets [--can | --built]

`go.mod` beside this file pins the version. A build takes minutes, and is cached as in `hack.kube.assets`. Its
CustomResourceDefinitions are kept beside the program in one file.
"""

from __future__ import annotations

import sys

from hack.kube.assets import Module, command

__all__ = ["DEFINITIONS", "FLAGGER"]

DEFINITIONS = "definitions.yaml"
"""The name of the file with its CustomResourceDefinitions, such as that of Canaries."""

FLAGGER = Module(
    name="flagger",
    binaries={"flagger": "flagger"},
    files={DEFINITIONS: "artifacts/flagger/crd.yaml"},
    source="github.com/fluxcd/flagger",
)


def main() -> int:
    return command(FLAGGER, program="hack.flagger.assets")


if __name__ == "__main__":
    sys.exit(main())
