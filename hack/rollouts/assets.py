"""Build the controller of Argo Rollouts from source, for tests of its health adapter on the real program.

    python -m hack.rollouts.assets [--can | --built]

`go.mod` beside this file pins the version. It repeats the replace lines of the controller's own go.mod, because Go
applies these only in the main module. A build takes minutes, and is cached as in `hack.kube.assets`. Its
CustomResourceDefinitions are kept beside the program.
"""

from __future__ import annotations

import sys

from hack.kube.assets import Module, command

__all__ = ["DEFINITIONS", "ROLLOUTS"]

DEFINITIONS = "definitions"
"""The name of the directory with its CustomResourceDefinitions, such as that of Rollouts."""

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
