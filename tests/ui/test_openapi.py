"""The description of the page's HTTP interface, and what is generated from it."""

from __future__ import annotations

import re
from pathlib import Path

import kardinal_controller.ui
from hack.docs.page_types import types
from kardinal_controller.ui.openapi import document

TYPES = Path(kardinal_controller.ui.__file__).parent / "page" / "src" / "api" / "types.ts"

DESIGN = Path(__file__).parents[2] / "docs" / "design" / "page.md"


def test_types_of_the_page_are_those_of_the_models() -> None:
    assert TYPES.read_text() == types(), "stale: run `make docs`"


def test_no_field_is_null_and_constants_are_always_there() -> None:
    schemas = document("1")["components"]["schemas"]

    assert '"null"' not in str(schemas).replace("'", '"')
    assert "kind" in schemas["DrawnGate"]["required"]
    assert "until" not in schemas["Sentence"]["required"]


def test_every_endpoint_of_the_design_is_described() -> None:
    named = set(re.findall(r"`(?:GET|POST|DELETE) /api/ui/v1(/[^?`…]+)", DESIGN.read_text())) - {"/openapi.json"}
    described = {path.removeprefix("/api/ui/v1") for path in document("1")["paths"]}

    assert {path.replace("{gate namespace}", "{gateNamespace}") for path in named} <= described | {"/stream/pipelines/"}
    assert "requestBody" in document("1")["paths"]["/api/ui/v1/actions/{action}"]["post"]
