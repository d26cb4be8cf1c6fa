"""The controller of Argo Rollouts, built from source: a real one to judge.

    python -m hack.rollouts.assets [--can | --built]

`go.mod` beside this file pins the version, with the replace lines of the controller's own go.mod, which Go reads in the
main module alone. The build takes minutes and is kept as those of `hack.kube.assets` are; beside the program are its
CustomResourceDefinitions.
"""

from __future__ import annotations

import sys

from hack.kube.assets import Module, command

__all__ = ["DEFINITIONS", "ROLLOUTS"]

DEFINITIONS = "definitions"
"""The directory in which the definitions of Rollouts and what belongs to them are kept."""

ROLLOUTS = Module(
    name="rollouts",
    binaries={"rollouts-controller": "rollouts-controller"},
    files={DEFINITIONS: "manifests/crds"},
    source="github.com/argoproj/argo-rollouts",
)


def main() -> int:
    return command(ROLLOUTS, program="hack.rollouts.assets")


if __name__ == "__main__":
    sys.exit(main())
