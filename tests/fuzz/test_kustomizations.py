"""Kustomizations as a Git writer may leave them: each takes the image, or the edit is refused in known words."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from kardinal.edits.images import PromotedImage
from kardinal.edits.kustomize.kustomization import set_images
from kardinal.objects.errors import KardinalError
from kardinal.objects.image_reference import ImageReference
from tests.fuzz.inputs import JSON, fuzzed, texts

IMAGE = PromotedImage("app", ImageReference.parse("ghcr.io/acme/app:1.2.3"))

entries = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["app", "ghcr.io/acme/app", "GHCR.io/acme/app:1"]) | texts | JSON,
        "newName": texts | JSON,
        "newTag": texts | JSON,
        "digest": texts | JSON,
        "tagSuffix": JSON,
        "other": JSON,
    },
)
documents = st.fixed_dictionaries(
    {}, optional={"images": st.lists(entries | JSON, max_size=3) | JSON, "resources": JSON, "namespace": JSON}
)
lines = st.sampled_from(
    [
        "images:",
        "- name: app",
        "  newTag: 1",
        "&a x",
        "*a",
        "x: &a [*a]",
        "<<: *a",
        "%YAML 1.1",
        "---",
        "...",
        "!!python/x y",
    ]
) | st.text(max_size=20)
files = (
    documents.map(lambda document: yaml.safe_dump(document).encode())
    | st.lists(lines, max_size=8).map(lambda found: "\n".join(found).encode("utf-8", "surrogatepass"))
    | st.binary(max_size=80)
    | st.integers(1, 400).map(lambda depth: b"x: " + b"[" * depth)
)


def edited_or_refused(content: bytes) -> bytes | KardinalError:
    try:
        return set_images(content, [IMAGE])
    except KardinalError as error:
        return error


def constructed(content: bytes) -> Any:
    """Return the document; None where it is well-formed and means nothing, as a merge of what is no mapping."""
    try:
        return yaml.safe_load(content)
    except yaml.constructor.ConstructorError:
        return None


@fuzzed
@given(content=files)
def test_any_file_takes_the_image_or_is_refused(content: bytes) -> None:
    after = edited_or_refused(content)
    if isinstance(after, KardinalError):
        assert len(str(after)) < 2000
        return
    assert set_images(after, [IMAGE]) == after
    found = constructed(after)
    assert found is None or any(str(entry.get("newTag")) == "1.2.3" for entry in found["images"])
