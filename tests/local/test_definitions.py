"""The CustomResourceDefinitions of kardinal on the local plane."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal_local.plane.schemas import schema_causes
from tests.support.plane import shipped_definitions


@pytest.mark.parametrize(
    "definition", shipped_definitions(), ids=lambda definition: definition["spec"]["names"]["kind"]
)
def test_the_plane_takes_every_definition_of_kardinal_whole(definition: dict[str, Any]) -> None:
    for version in definition["spec"]["versions"]:
        assert schema_causes(version["schema"]["openAPIV3Schema"], "schema", status=True) == ()
