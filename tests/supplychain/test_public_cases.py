"""The tests of Cartographer, unmodified: directories of kuttl in its public Go module."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from hack.kuttl import Case, cases_of, define, kinds_of, module
from hack.renderers.assets import find
from tests.supplychain.chains import Chains
from tests.support.identities import RESOURCES
from tests.support.world import World

VERSION = "0.7.0"
SECONDS = 10.0
"""The time for each step, as its suite has it."""

_RBAC = "rbac.authorization.k8s.io"
BINDING = {
    "apiVersion": f"{_RBAC}/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "every-account"},
    "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": "system:serviceaccounts"}],
}
"""The control plane of its suite refuses no account anything."""


def _public() -> Sequence[Path]:
    if "SUPPLYCHAIN" not in os.environ or shutil.which("go") is None:
        return ()
    return cases_of([module(VERSION) / "tests" / "kuttl"])


@pytest.mark.skipif(not _public(), reason="`make test-supplychain` runs the tests of Cartographer, which Go fetches")
@pytest.mark.parametrize("directory", _public(), ids=lambda path: f"{path.parent.name}/{path.name}")
async def test_directory_of_cartographer_passes_unmodified(world: World, directory: Path) -> None:
    if (ytt := find("ytt")) is None:
        pytest.skip("there is no ytt: `make renderers` builds it")
    await Chains.start(world, ytt=ytt)
    await world.client.apply(RESOURCES["ClusterRoleBinding"], BINDING, field_manager="test", force=True)
    await define(world.client, sorted((module(VERSION) / "tests" / "resources" / "crds").glob("*.yaml")))
    case = Case(world.client, await kinds_of(world.client), directory, f"public-{directory.name.lower()}"[:63])
    assert await case.run(SECONDS) == []
