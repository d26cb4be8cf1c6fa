"""Digests in manifests: each edit that brings images writes them, or refuses to write the tag alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kardinal.tree.edit import EditError
from tests.support.trees import Files, promoted_bundle

APP = "ghcr.io/acme/app"
DIGEST = "sha256:" + "ab" * 32
VALUES = f"image:\n  repository: {APP}\n  tag: '1.0' # x\n"
PINNED = promoted_bundle(f"{APP}:1.1@{DIGEST}")
KUSTOMIZATION = f"images:\n- name: {APP}\n  newTag: '1.0'\n"


@pytest.mark.parametrize(
    ("step", "name", "before", "after"),
    [
        (
            ("kustomize-set-image", {}),
            "kustomization.yaml",
            KUSTOMIZATION,
            f"images:\n- name: {APP}\n  newTag: '1.1'\n  digest: {DIGEST}\n",
        ),
        (
            ("helm-set-image", {}),
            "values.yaml",
            f"{VALUES}  digest: ''\n",
            f"{VALUES}  digest: '{DIGEST}'\n".replace("1.0", "1.1"),
        ),
        (
            ("helm-set-image", {"values": [{"path": "image", "value": "reference"}]}),
            "values.yaml",
            f"image: {APP}:1.0\n",
            f"image: {APP}:1.1@{DIGEST}\n",
        ),
        (("replace", {"files": ["main.tf"]}), "main.tf", f"x = '{APP}:1.0'", f"x = '{APP}:1.1@{DIGEST}'"),
    ],
    ids=["kustomize", "helm digest", "helm reference", "replace"],
)
def test_every_default_edit_writes_the_digest_that_is_asked_for(
    tmp_path: Path, step: tuple[str, dict[str, Any]], name: str, before: str, after: str
) -> None:
    for verify in ("warn", "off"):
        files = Files(tmp_path / verify, {name: before})
        files.changes(step, of=PINNED, update={"pinDigest": True, "verifyEffect": verify})
        assert files.read(name) == after


@pytest.mark.parametrize("verify", ["fail", "warn", "off"])
@pytest.mark.parametrize("values", [[], [{"path": "image.tag"}, {"path": "image.digest", "value": "digest"}]])
def test_values_without_a_place_for_a_digest_do_not_take_the_tag_alone(
    tmp_path: Path, verify: str, values: list[dict[str, str]]
) -> None:
    files = Files(tmp_path, {"values.yaml": VALUES})
    update = {"pinDigest": True, "verifyEffect": verify, "strategy": "helm", "helm": {"values": values}}
    with pytest.raises(EditError, match=r"^environments/dev/values\.yaml: .*digest"):
        files.changes(("helm-set-image", {}), of=PINNED, update=update)
