"""The registry of the CNCF project Distribution, built from source: a real one to ask for digests.

    python -m hack.registry.assets [--can | --built]

`go.mod` beside this file pins the version. The build takes minutes and is kept as those of `hack.kube.assets` are.
"""

from __future__ import annotations

import sys

from hack.kube.assets import Module, command

__all__ = ["REGISTRY"]

REGISTRY = Module(name="registry", binaries={"registry": "registry"})


def main() -> int:
    return command(REGISTRY, program="hack.registry.assets")


if __name__ == "__main__":
    sys.exit(main())
