"""The images: a wheel of what `.dockerignore` lets through runs the programs, and holds nothing that is for a laptop.

Each test builds it, so there are few.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
BUILT = ["building", "built", "node_modules"]
"""Of the web page: the image builds it in a stage of its own."""
IGNORED = ["*", "**/__pycache__", *(f"kardinal_controller/ui/page/{name}" for name in BUILT)]
"""The patterns of `.dockerignore` beside the exceptions from the first of them."""

PROGRAMS = ("kardinal", "kardinal-controller", "kardinal-agent", "kardinal-supplychain")
DEADLINE = 100.0
WHEEL = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
HELP = """
import sys
from importlib.metadata import entry_points
for name in sys.argv[1:]:
    (script,) = entry_points(group="console_scripts", name=name)
    script.load()(["--help"], prog_name=name, standalone_mode=False)
"""

pytestmark = pytest.mark.timeout(180)


def _copy_context(directory: Path) -> None:
    """Copy what `docker build` sends of the checkout."""
    lines = [line.strip() for line in (CHECKOUT / ".dockerignore").read_text().splitlines()]
    patterns = [line for line in lines if line and not line.startswith("#")]
    assert [pattern for pattern in patterns if not pattern.startswith("!")] == IGNORED
    directory.mkdir()
    for name in (pattern.removeprefix("!") for pattern in patterns if pattern.startswith("!")):
        source = CHECKOUT / name
        if source.is_dir():
            shutil.copytree(source, directory / name, ignore=shutil.ignore_patterns("__pycache__", *BUILT))
        else:
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, directory / name)


def _checked(*command: str | Path, directory: Path | None = None, **environment: str) -> str:
    """Return the output of a command that must succeed."""
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory into which the wheel of an image is installed."""
    directory = tmp_path_factory.mktemp("image")
    _copy_context(directory / "src")
    # What pip calls for it, without the processes and the second of pip.
    _checked(sys.executable, "-c", WHEEL, directory / "wheels", directory=directory / "src")
    (wheel,) = (directory / "wheels").iterdir()
    # It has Python alone, and is installed where it is unpacked.
    shutil.unpack_archive(wheel, directory / "installed", format="zip")
    return directory / "installed"


def _run(image: Path, code: str, *arguments: str) -> str:
    """Run code that finds the image's packages and those they depend on, and not the checkout."""
    # Without `site` (-S) the hook of the editable installation is not run.
    paths = os.pathsep.join([str(image), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    return _checked(sys.executable, "-S", "-P", "-c", code, *arguments, PYTHONPATH=paths)


def test_every_program_starts_in_an_image_without_the_commands_for_a_laptop(image: Path) -> None:
    printed = _run(image, HELP, *PROGRAMS)
    assert re.findall(r"^Usage: (\S+)", printed, re.MULTILINE) == list(PROGRAMS)
    _, _, listed = printed.partition("\nCommands:\n")
    commands = set(re.findall(r"^  (\S+)", listed.partition("\nUsage: ")[0], re.MULTILINE))
    assert {"get", "promote", "version"} <= commands
    assert commands.isdisjoint({"local", "demo"})


def test_the_packages_of_an_image_are_those_of_the_programs(image: Path) -> None:
    packages = {path.parent.name for path in image.glob("*/__init__.py")}
    assert packages == {"kardinal", "kardinal_agent", "kardinal_controller", "kardinal_supplychain"}
    found = "from importlib.util import find_spec; print(find_spec('kardinal_local'), find_spec('kardinal').origin)"
    assert _run(image, found).split() == ["None", str(image / "kardinal" / "__init__.py")]
