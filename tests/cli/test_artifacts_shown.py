"""A Bundle of several artifacts shows each of them, in the tables of kubectl and of kardinal."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.promotion.api.image import stored_versions
from kardinal.promotion.kinds import BUNDLE
from tests.bundles.reading import phase
from tests.cli.conftest import Cli
from tests.cli.in_process import cli
from tests.support.names import DEV
from tests.support.objects import bundle, pipeline
from tests.support.plane import shipped_definitions
from tests.support.programs import start_controller
from tests.support.world import World

__all__ = ["cli"]

IMAGES = [{"reference": "ghcr.io/acme/my-app:1.2.0"}, {"name": "jobs", "reference": "ghcr.io/acme/worker:2.1.4"}]
SHOWN = "my-app:1.2.0, jobs:2.1.4"
COMMIT = {"repository": "https://git.example.com/acme/config", "sha": "c0ffee0" + "0" * 33}


@pytest.mark.parametrize(
    ("artifacts", "text"),
    [
        ({"images": IMAGES[:1]}, "1.2.0"),
        ({"images": IMAGES}, SHOWN),
        ({"images": IMAGES[:1], "gitCommit": COMMIT}, "my-app:1.2.0, config:c0ffee0"),
        ({"gitCommit": COMMIT}, "c0ffee0"),
        ({"images": [{"reference": "a\x1b[2Jb"}, *IMAGES[:1]]}, "a[2Jb, my-app:1.2.0"),
        (
            {"images": [{"reference": f"ghcr.io/acme/a{number}:1"} for number in range(10)]},
            "a0:1, a1:1, a2:1, a3:1, a4:1, a5:1, a6:1, a7:1, +2",
        ),
        ({"charts": [{"repository": "r", "name": "c" * 253, "version": "1" * 128} for _ in range(8)]}, None),
    ],
    ids=["one", "two images", "an image and a commit", "a commit", "no image", "many", "long"],
)
def test_all_artifacts_are_told_in_one_line(artifacts: dict[str, Any], text: str | None) -> None:
    shown = stored_versions(artifacts)
    assert len(shown) <= 600
    assert shown == text or (text is None and shown.endswith("…"))


async def test_every_image_of_a_bundle_stands_in_every_table(cli: Cli, world: World) -> None:
    await start_controller(world, standalone=False)
    made = bundle("my-app-1")
    made["spec"]["artifacts"]["images"] = IMAGES
    await world.apply(pipeline("https://git.example.com/acme/gitops.git", provider="git", environments=[DEV]), made)
    stored = await world.wait_for(BUNDLE, "my-app-1", phase("Promoting"))
    assert stored["status"]["version"] == SHOWN
    for command in (("get", "bundles", "my-app"), ("status", "my-app"), ("explain", "my-app", "--env", DEV)):
        assert SHOWN in await cli(*command), command
    assert f"Bundle my-app-1 ({SHOWN}): Promoting" in (await cli.attempt("get", "steps", "my-app")).err


WITHOUT_CONDITIONS = ("GraphRevision", "Approval", "CatalogTenant", "CatalogCluster")


@pytest.mark.parametrize(
    "definition",
    [each for each in shipped_definitions() if each["spec"]["names"]["kind"] not in WITHOUT_CONDITIONS],
    ids=lambda each: each["spec"]["names"]["kind"],
)
def test_kubectl_shows_a_message_of_every_kind_with_conditions(definition: dict[str, Any]) -> None:
    (version,) = definition["spec"]["versions"]
    columns = {each["name"]: each["jsonPath"] for each in version["additionalPrinterColumns"]}
    assert "message" in columns["Message"]
