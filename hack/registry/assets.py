"""Build Distribution, the image registry of the CNCF, from source, for tests that resolve digests of tags.

    python -m hack.registry.assets [--can | --built]

`go.mod` beside this file pins the version. A build takes minutes, and is cached as in `hack.kube.assets`.
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
