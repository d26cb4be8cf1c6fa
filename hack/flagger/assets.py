"""Flagger, built from source: a real one to judge.

    python -m hack.flagger.assets [--can | --built]

`go.mod` beside this file pins the version. The build takes minutes and is kept as those of `hack.kube.assets` are;
beside the program are its CustomResourceDefinitions, in one file.
"""

from __future__ import annotations

import sys

from hack.kube.assets import Module, command

__all__ = ["DEFINITIONS", "FLAGGER"]

DEFINITIONS = "definitions.yaml"
"""The name under which the definitions of Canaries and what belongs to them are kept."""

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
