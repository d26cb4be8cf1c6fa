"""The package of the examples is installed as its users would install it, and its Pipeline is promoted."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kardinal.extensions import Extensions, load_extensions
from kardinal.promotion.api.health_adapters import AdapterDeclaration
from kardinal.promotion.kinds import BUNDLE, PIPELINE, PROMOTION_STEP
from kardinal_agent.errors import ConfigurationError
from kardinal_agent.health import adapters
from tests.support.names import DEV
from tests.support.objects import bundle, environment, pipeline
from tests.support.programs import start_controller
from tests.support.repository import GitRepository
from tests.support.world import World

PACKAGE = Path(__file__).parents[2] / "examples" / "step-package"
STEPS = [
    {"uses": "git-clone"},
    {"uses": "acme-ticket", "as": "ticket", "config": {"queue": "releases"}},
    {"uses": "acme-stamp", "config": {"note": "ticket ${outputs.ticket.id}"}},
    {"uses": "git-commit"},
    {"uses": "git-push"},
    {"uses": "health-check"},
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package into a directory of its own; it is built from a copy, since building writes beside it."""
    source = tmp_path_factory.mktemp("source") / "package"
    target = tmp_path_factory.mktemp("site")
    shutil.copytree(PACKAGE, source)
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(target))
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(source)], check=True)
    return target


@pytest.fixture
def extensions(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Extensions]:
    """Yield the extensions of a program in whose environment the package is installed."""
    monkeypatch.syspath_prepend(str(site))
    yield load_extensions()
    for name in [name for name in sys.modules if name.partition(".")[0] == "acme_kardinal"]:
        del sys.modules[name]


def written(repository: GitRepository, *, health: str = "acme-landed", steps: Any = None) -> Any:
    place = environment(DEV, steps=steps or STEPS, health={"type": health})
    return pipeline(repository, environments=[place], provider="acme-git")


async def test_a_pipeline_of_the_package_is_translated_and_executed(
    world: World, repository: GitRepository, extensions: Extensions, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ACME_TICKETS", str(tmp_path))
    await start_controller(world, extensions=extensions)
    await world.apply(written(repository), bundle("app-1", tag="1.1.0"))
    await world.wait_for(BUNDLE, "app-1", lambda made: (made.get("status") or {}).get("phase") == "Verified")
    ticket = f"releases-app-1-{DEV}"
    assert [path.name for path in tmp_path.glob("releases-*")] == [ticket]
    assert repository.read(f"environments/{DEV}/VERSION") == f"1.1.0\nticket {ticket}\n"
    status = (await world.get(PROMOTION_STEP, f"app-1-{DEV}"))["status"]
    assert status["outputs"]["ticket"] == {"id": ticket}
    assert status["message"] == f"{status['commit'][:12]} has landed"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"steps": [{"uses": "acme-stmp"}, *STEPS[-1:]]}, "did you mean 'acme-stamp'?"),
        ({"health": "acme-lnded"}, "did you mean acme-landed?"),
    ],
)
async def test_a_name_close_to_one_of_the_package_is_refused_with_that(
    world: World, repository: GitRepository, extensions: Extensions, change: dict[str, Any], says: str
) -> None:
    await start_controller(world, extensions=extensions)
    await world.apply(written(repository, **change))
    made = await world.wait_for(
        PIPELINE, "my-app", lambda made: bool((made.get("status") or {}).get("conditions")), within=timedelta(minutes=1)
    )
    (ready,) = (each for each in made["status"]["conditions"] if each["type"] == "Ready")
    assert ready["status"] == "False"
    assert says in ready["message"]


def test_a_health_adapter_without_code_keeps_the_agent_from_starting() -> None:
    with pytest.raises(ConfigurationError, match="health adapter empty declares no adapter"):
        adapters({"empty": AdapterDeclaration(name="empty")})
