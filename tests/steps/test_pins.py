"""Which digests an environment with `update.pinDigest` writes, and what it waits for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kardinal.promotion.api import Bundle
from kardinal.promotion.api.pipeline import StepSpec, Update
from kardinal.promotion.steps.pins import pinned, undetermined

APP = "ghcr.io/acme/app:1.1"
SIDE = "ghcr.io/acme/side:2"
THEN, OWN = (f"sha256:{digit * 64}" for digit in "12")
NOW = "2026-03-03T10:00:00Z"


def bundle(*images: dict[str, Any], known: Mapping[str, str | None] | None = None) -> Bundle:
    """Return a Bundle of images; `known` are the digests that its tags had."""
    noted = [
        {"reference": reference, "resolvedAt": NOW, **({"digest": digest} if digest else {"message": "it is down"})}
        for reference, digest in (known or {}).items()
    ]
    status = {"artifacts": noted} if known is not None else {}
    return Bundle.model_validate({"spec": {"artifacts": {"images": images}}, "status": status})


def update(**fields: Any) -> Update:
    return Update.model_validate({"pinDigest": True, **fields})


def digests(found: Bundle) -> list[str | None]:
    return [image.digest for image in found.spec.artifacts.images]


def step(**config: Any) -> StepSpec:
    return StepSpec.model_validate({"uses": "kustomize-set-image", "config": config})


@pytest.mark.parametrize(
    ("image", "written"),
    [
        ({"reference": APP}, THEN),
        ({"reference": APP, "digest": OWN}, OWN),
        ({"reference": f"{APP}@{OWN}"}, None),
        ({"reference": "no image"}, None),
    ],
    ids=["a tag", "a digest of its own", "a digest in the reference", "what cannot be read"],
)
def test_a_tag_gets_its_digest_and_what_the_bundle_names_itself_stays(
    image: dict[str, str], written: str | None
) -> None:
    known = {APP: THEN, f"{APP}@{OWN}": THEN}
    found = pinned(bundle(image, known=known), update(), ())
    assert digests(found) == [written]
    assert undetermined(found, update(), ()) is None


@pytest.mark.parametrize("choice", [{}, {"pinDigest": None}, {"pinDigest": False}])
def test_without_the_field_a_tag_stays_a_tag(choice: dict[str, Any]) -> None:
    named = bundle({"reference": APP}, known={APP: THEN})
    by_tag = Update.model_validate(choice)
    assert pinned(named, by_tag, ()) == named
    assert undetermined(bundle({"reference": APP}), by_tag, ()) is None


@pytest.mark.parametrize(
    ("known", "why"),
    [
        (None, "no registry was asked for it when the Bundle started"),
        ({}, "no registry was asked for it when the Bundle started"),
        ({APP: None}, "it is down; looked up again every minute"),
    ],
)
def test_an_image_without_a_known_digest_is_waited_for_by_name(known: dict[str, str | None] | None, why: str) -> None:
    message = undetermined(bundle({"reference": APP}, known=known), update(), ())
    assert message is not None
    assert message.startswith(f"waits for the digest of {APP}, by which it is to be written (update.pinDigest): ")
    assert why in message


@pytest.mark.parametrize(
    ("steps", "waits"),
    [
        ([], False),
        ([step()], False),
        ([step(images=["app"])], False),
        ([step(images=["side"])], True),
        ([step(images=["${outputs.choice.name}"])], True),
        ([step(images="${outputs.choice.names}")], True),
    ],
    ids=["update.images", "no config", "the same", "another one", "an expression", "a list from an expression"],
)
@pytest.mark.parametrize("entry", ["app", APP.partition(":")[0]])
def test_the_digests_of_images_that_are_not_taken_are_not_waited_for(
    steps: list[StepSpec], waits: bool, entry: str
) -> None:
    both = bundle({"name": "app", "reference": APP}, {"name": "side", "reference": SIDE}, known={APP: THEN, SIDE: None})
    taken = update(images=[entry])
    found = pinned(both, taken, steps)
    assert digests(found) == [THEN, None]
    assert (undetermined(found, taken, steps) is not None) is waits
    assert undetermined(found, update(), steps) is not None
