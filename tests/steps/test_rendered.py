"""Rendered manifests are written only where there is something to write."""

from __future__ import annotations

import pytest

from kardinal.promotion.steps.rendered import as_files
from kardinal.tree.edit import EditError
from kardinal.tree.overlay import Overlay

OBJECT = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"


@pytest.mark.parametrize("out", ["environments/dev/manifests.yaml", "environments/dev/rendered"])
@pytest.mark.parametrize("output", [b"", b"\n---\n", b"# nothing\n", b"<html>oops</html>", b"spec:\n  kind: X\n"])
def test_an_output_without_an_object_empties_no_environment(out: str, output: bytes) -> None:
    with pytest.raises(EditError, match="the renderer returned no object"):
        as_files(output, out, Overlay(None))


def test_an_object_is_written() -> None:
    assert as_files(OBJECT, "a.yaml", Overlay(None)) == {"a.yaml": OBJECT}
    assert as_files(OBJECT, "out", Overlay(None)) == {"out/configmap-a.yaml": OBJECT}
