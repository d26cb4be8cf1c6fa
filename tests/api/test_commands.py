"""Commands for people to copy: they do what they say, and hold nothing that a shell would run."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from kardinal.promotion.api import Bundle
from kardinal.promotion.api.commands import create_command
from tests.support import objects

DIGEST = "sha256:" + "a" * 64


def bundle(*images: dict[str, Any], **spec: Any) -> Bundle:
    made = objects.bundle("my-app-1", **spec)
    made["spec"]["artifacts"]["images"] = list(images)
    return Bundle.model_validate(made)


@pytest.mark.parametrize(
    ("images", "spec", "command"),
    [
        (
            [{"reference": "ghcr.io/acme/my-app:1.2.0"}],
            {},
            "kardinal create bundle my-app --image ghcr.io/acme/my-app:1.2.0",
        ),
        (
            [{"name": "my-app", "reference": "ghcr.io/acme/my-app:1.2.0", "digest": DIGEST}],
            {"intent": {"target": "dev"}},
            f"kardinal create bundle my-app --image ghcr.io/acme/my-app:1.2.0@{DIGEST} --target dev",
        ),
        (
            [{"name": "web", "reference": "ghcr.io/acme/my-app:1"}, {"reference": "ghcr.io/acme/worker:2"}],
            {},
            "kardinal create bundle my-app --image web=ghcr.io/acme/my-app:1 --image ghcr.io/acme/worker:2",
        ),
    ],
    ids=["an image", "a digest and a target", "two images"],
)
def test_the_command_makes_another_bundle_of_the_same_images(
    images: list[dict[str, Any]], spec: dict[str, Any], command: str
) -> None:
    assert create_command(bundle(*images, **spec), "my-app") == command


@pytest.mark.parametrize(
    "image",
    [
        {"reference": "ghcr.io/acme/my-app:1; rm -rf ~"},
        {"reference": "ghcr.io/acme/$(id):1"},
        {"name": "a;id", "reference": "ghcr.io/acme/my-app:1"},
        {"name": "--kubeconfig", "reference": "ghcr.io/acme/my-app:1"},
        {"name": "a\nb", "reference": "ghcr.io/acme/my-app:1"},
        {"reference": "ghcr.io/acme/my-app"},
    ],
    ids=["reference", "substitution", "name", "option", "line", "no version"],
)
def test_non_image_artifact_is_in_no_command(image: dict[str, Any]) -> None:
    assert create_command(bundle(image), "my-app") == ""


def test_every_word_is_one_to_a_shell() -> None:
    made = bundle({"reference": "ghcr.io/acme/my-app:1"}, intent={"target": "dev"})
    assert shlex.split(create_command(made, "it's; id"))[3] == "it's; id"


@pytest.mark.parametrize(
    "artifacts",
    [
        {"gitCommit": {"repository": "https://git.example.com/acme/config", "sha": "a" * 40}},
        {"images": [{"reference": f"ghcr.io/acme/app-{number}:1"} for number in range(32)]},
    ],
    ids=["a commit", "too long to be read"],
)
def test_other_bundles_have_no_command(artifacts: dict[str, Any]) -> None:
    made = objects.bundle("my-app-1")
    made["spec"]["artifacts"] = artifacts
    assert create_command(Bundle.model_validate(made), "my-app") == ""


def test_the_command_for_a_rollback_goes_back_to_the_same_bundle() -> None:
    identities = {"of": {"name": "my-app-2", "uid": "2"}, "restores": {"name": "my-app-1", "uid": "1"}}
    back = bundle({"reference": "ghcr.io/acme/my-app:1"}, intent={"rollback": {"environments": ["eu"], **identities}})
    assert create_command(back, "my-app") == "kardinal rollback my-app --env eu --to my-app-1"
