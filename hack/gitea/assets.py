"""Build Gitea from source: a real host for the tests of the providers `gitea` and `forgejo`.

    python -m hack.gitea.assets [--can | --built]

`go.mod` beside this file pins the version. It repeats the replace lines of Gitea's own go.mod, because Go applies these
only in the main module. A build takes some five minutes, and is cached as in `hack.kube.assets`. The directories
`templates`, `options` and `public`, which Gitea reads, are kept beside the program.
"""

from __future__ import annotations

import os
import re
import shutil
import sys

from hack.kube.assets import HACK, AssetsMissing, Module, built, command, obtainable

__all__ = ["GITEA", "GITEA_VERSION", "gitea_available"]


def _version() -> str:
    found = re.search(r"^\tcode\.gitea\.io/gitea v(\S+)", (HACK / "gitea" / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise AssetsMissing(f"{HACK / 'gitea' / 'go.mod'} does not require code.gitea.io/gitea")
    return found[1]


GITEA_VERSION = _version()
"""The version of Gitea that is built; `go.mod` is its single source."""

GITEA = Module(
    name="gitea",
    binaries={"gitea": "gitea"},
    flags=("-s", "-w", f"-X main.Version={GITEA_VERSION}"),
    files={"templates": "templates", "options": "options", "public": "public"},
    source="code.gitea.io/gitea",
    tags="sqlite sqlite_unlock_notify",
    cgo=True,
)


def gitea_available() -> bool:
    """Return whether Gitea is built, or can be built, which needs a C compiler because of its database."""
    return built(GITEA) or (obtainable(GITEA) and shutil.which(os.environ.get("CC", "gcc")) is not None)


def main() -> int:
    return command(GITEA, program="hack.gitea.assets", available=gitea_available)


if __name__ == "__main__":
    sys.exit(main())
