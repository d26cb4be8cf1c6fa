"""The registry of the CNCF project Distribution, built from source: a real one to ask for digests.

    python -m hack.registry.assets [--can | --built]

`go.mod` beside this file pins the version. The build takes minutes and is kept as those of `hack.kube.assets` are.
"""

from __future__ import annotations

import argparse
import sys

from hack.kube.assets import Module, built, obtain, obtainable, reported

__all__ = ["REGISTRY"]

REGISTRY = Module(name="registry", binaries={"registry": "registry"})


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hack.registry.assets", description="Build what is not there yet.")
    parser.add_argument("--can", action="store_true", help="build nothing: end with 0 when there is or can be one")
    parser.add_argument("--built", action="store_true", help="build nothing: end with 0 when there is one")
    chosen = parser.parse_args()
    if chosen.built or chosen.can:
        return 0 if built(REGISTRY) or (chosen.can and obtainable(REGISTRY)) else 1
    return reported(lambda: obtain(REGISTRY))


if __name__ == "__main__":
    sys.exit(main())
