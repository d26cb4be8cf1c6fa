"""The programs of a real Kubernetes control plane, found or built from source.

    make assets

What is tested against a real API server needs one that anybody gets, in the one version that the local plane emulates:
`go.mod` beside this file pins it, and Go builds it. A build takes minutes, so it is kept in
`${XDG_CACHE_HOME:-~/.cache}/kardinal` under a name made of everything that went into it; a build that was interrupted
leaves nothing behind that looks finished. Binaries that are there already are used instead, under the names that other
Kubernetes projects use: `TEST_ASSET_<NAME>` for one of them (`TEST_ASSET_KUBE_APISERVER`), `KUBEBUILDER_ASSETS` for a
directory of them.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

__all__ = [
    "HACK",
    "KUBERNETES",
    "Assets",
    "AssetsMissing",
    "Module",
    "available",
    "build",
    "built",
    "command",
    "locate",
    "obtain",
    "obtainable",
    "reported",
]

HACK = Path(__file__).parents[1]
GO_NEEDED = (1, 26)
_MISSING = "Go ≥ 1.26 needed"


class AssetsMissing(Exception):
    """A program is neither there nor can it be built; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Module:
    """One Go module of tools, and what it builds: name of the binary -> name under which it is kept."""

    name: str
    binaries: dict[str, str]
    flags: tuple[str, ...] = ("-s", "-w")
    package: str = "tool"
    """The package that is built: the tools that go.mod lists, or a program of the module's own."""
    files: dict[str, str] = field(default_factory=dict)
    """Files and directories kept beside the binaries: name -> path inside the module that the tool comes from."""
    source: str = ""
    """The module that `files` are taken from."""
    tags: str = ""
    """Build tags; the ones of a program that contains C need `cgo`."""
    cgo: bool = False

    @property
    def directory(self) -> Path:
        return HACK / self.name


def _kubernetes_version() -> str:
    found = re.search(r"^\tk8s\.io/kubernetes v(\S+)", (HACK / "kube" / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise AssetsMissing(f"{HACK / 'kube' / 'go.mod'} does not require k8s.io/kubernetes")
    return found[1]


KUBERNETES = _kubernetes_version()
"""The version of Kubernetes that is built, e.g. 1.36.3; `go.mod` is its single source."""

_MAJOR, _MINOR, _ = KUBERNETES.split(".", 2)
_VERSION_PACKAGE = "k8s.io/component-base/version"

KUBE = Module(
    name="kube",
    binaries={
        "kube-apiserver": "kube-apiserver",
        "kube-controller-manager": "kube-controller-manager",
        "kube-scheduler": "kube-scheduler",
        "kubectl": "kubectl",
        "server": "etcd",
    },
    flags=(
        "-s",
        "-w",
        f"-X {_VERSION_PACKAGE}.gitVersion=v{KUBERNETES}",
        f"-X {_VERSION_PACKAGE}.gitMajor={_MAJOR}",
        f"-X {_VERSION_PACKAGE}.gitMinor={_MINOR}",
    ),
)
_STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
    "pod/fast/pod-ready.yaml",
)
KWOK = Module(
    name="kwok",
    binaries={"kwok": "kwok"},
    files={Path(stage).name: f"kustomize/stage/{stage}" for stage in _STAGES},
    source="sigs.k8s.io/kwok",
)
GO_CLIENT = Module(name="goclient", binaries={"goclient": "goclient"}, package=".")
MODULES = (KUBE, KWOK, GO_CLIENT)


@dataclass(frozen=True, slots=True)
class Assets:
    """The paths of programs by name."""

    binaries: dict[str, Path]

    def __getitem__(self, name: str) -> Path:
        """Return the program `name`; raise AssetsMissing when it is not there."""
        if name not in self.binaries:
            raise AssetsMissing(f"{name} is missing: run `make assets`, or name it in {_variable(name)}")
        return self.binaries[name]

    def beside(self, name: str) -> Path:
        """Return the directory of the program `name`, which holds what was kept with it."""
        return self[name].parent


def locate() -> Assets:
    """Return the programs that are there already, without building anything."""
    found: dict[str, Path] = {}
    for module in MODULES:
        kept = _kept(module)
        for name in module.binaries.values():
            path = _named(name) or (kept / name if kept is not None else None)
            if path is not None:
                found[name] = path
    return Assets(found)


def available() -> bool:
    """Return whether a real API server can be had: it is there, or Go can build it."""
    return {"kube-apiserver", "etcd"} <= locate().binaries.keys() or _go_version() >= GO_NEEDED


def build() -> Assets:
    """Build what is not there. AssetsMissing when something has to be built and there is no Go that could."""
    for module in MODULES:
        if all(_named(name) is not None for name in module.binaries.values()):
            continue
        if _go_version() < GO_NEEDED:
            if _named("kube-apiserver") is not None and _named("etcd") is not None:
                continue
            raise AssetsMissing(
                f"{_MISSING} to build Kubernetes {KUBERNETES}: install it from https://go.dev/dl, "
                f"or set KUBEBUILDER_ASSETS to a directory with etcd and kube-apiserver {KUBERNETES}"
            )
        _build(module)
    return locate()


def built(module: Module) -> bool:
    """Return whether a module is built."""
    return _kept(module) is not None


def obtainable(module: Module) -> bool:
    """Return whether a module is built, or Go can build it."""
    return built(module) or _go_version() >= GO_NEEDED


def obtain(module: Module) -> Path:
    """Return the directory of what a module builds, and build it if it is not there; raises AssetsMissing."""
    kept = _kept(module)
    if kept is not None:
        return kept
    if _go_version() < GO_NEEDED:
        raise AssetsMissing(f"{_MISSING} to build {module.name}: install it from https://go.dev/dl")
    _build(module)
    return _target(module)


def _build(module: Module) -> None:
    target = _target(module)
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.with_suffix(".lock")):
        if target.is_dir():
            return
        began = time.monotonic()
        _say(f"building {module.name} into {target}, which takes minutes the first time")
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f"{target.name}.") as scratch:
            made = Path(scratch) / "made"
            made.mkdir()
            command = ["go", "build", "-trimpath", "-ldflags", " ".join(module.flags), "-o", f"{made}/"]
            command += ["-tags", module.tags] if module.tags else []
            environment = _environment() | {"CGO_ENABLED": "1" if module.cgo else "0"}
            subprocess.run([*command, module.package], cwd=module.directory, env=environment, check=True)
            for built, name in module.binaries.items():
                (made / built).rename(made / name)
            _keep_files(module, made)
            made.rename(target)
        _say(f"built {module.name} in {time.monotonic() - began:.0f} s")


def _say(text: str) -> None:
    # Standard output is for the answer.
    print(text, file=sys.stderr, flush=True)


def _keep_files(module: Module, made: Path) -> None:
    if not module.files:
        return
    source = Path(_go("list", "-m", "-f", "{{.Dir}}", module.source, directory=module.directory))
    for name, path in module.files.items():
        if (source / path).is_dir():
            shutil.copytree(source / path, made / name, copy_function=shutil.copyfile)
            # Directories of the module cache are read-only, and so would the copies be.
            for directory in (made / name, *(made / name).rglob("*/")):
                directory.chmod(0o755)
        else:
            (made / name).write_bytes((source / path).read_bytes())


def _kept(module: Module) -> Path | None:
    """Return where the module was built before; without Go its version is unknown, and any build of it will do."""
    if _go_version() >= GO_NEEDED:
        target = _target(module)
        return target if target.is_dir() else None
    kept = sorted(path for path in _cache().glob(f"{module.name}-{_sources(module)}-*") if path.is_dir())
    return kept[-1] if kept else None


def _target(module: Module) -> Path:
    version = ".".join(map(str, _go_version()))
    return _cache() / f"{module.name}-{_sources(module)}-go{version}"


def _sources(module: Module) -> str:
    """Return a name for everything that goes into a build but the compiler."""
    digest = hashlib.sha256()
    for path in ("go.mod", "go.sum", *sorted(path.name for path in module.directory.glob("*.go"))):
        digest.update((module.directory / path).read_bytes())
    parts = (*module.flags, *module.files, *module.tags.split(), platform.system(), platform.machine())
    digest.update("\0".join(parts).encode())
    return digest.hexdigest()[:16]


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kardinal"


def _named(name: str) -> Path | None:
    """Return the program that the environment names, if it does."""
    if one := os.environ.get(_variable(name)):
        return Path(one)
    directory = os.environ.get("KUBEBUILDER_ASSETS")
    path = Path(directory) / name if directory else None
    return path if path is not None and path.is_file() else None


def _variable(name: str) -> str:
    return f"TEST_ASSET_{name.upper().replace('-', '_')}"


@cache
def _go_version() -> tuple[int, ...]:
    """(1, 26, 8), or (0,) when there is no Go."""
    if shutil.which("go") is None:
        return (0,)
    return tuple(int(part) for part in re.findall(r"\d+", _go("env", "GOVERSION", directory=HACK)))


def _go(*arguments: str, directory: Path) -> str:
    done = subprocess.run(
        ["go", *arguments], cwd=directory, env=_environment(), check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def _environment() -> dict[str, str]:
    # The compiler that is installed, never one that Go would fetch.
    return os.environ | {"GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One builder at a time; the others wait and find it built."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hack.kube.assets", description="Build what is not there yet.")
    parser.add_argument("--can", action="store_true", help="build nothing: end with 0 when there is or can be a server")
    if parser.parse_args().can:
        return 0 if available() else 1
    return reported(lambda: build().beside("kube-apiserver"))


def command(module: Module, *, program: str, available: Callable[[], bool] | None = None) -> int:
    """Run the command line of a module beside those of Kubernetes: build it, or say whether it is or can be built.

    `available` says whether it can be where more is needed than Go.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description="Build what is not there yet.")
    parser.add_argument("--can", action="store_true", help="build nothing: end with 0 when it is or can be built")
    parser.add_argument("--built", action="store_true", help="build nothing: end with 0 when it is built")
    chosen = parser.parse_args()
    if chosen.built:
        return 0 if built(module) else 1
    if chosen.can:
        return 0 if (available() if available is not None else obtainable(module)) else 1
    return reported(lambda: obtain(module))


def reported(get: Callable[[], Path]) -> int:
    """Print where programs are that `get` builds, or why there are none; return the exit code."""
    try:
        print(get())
    except AssetsMissing as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"{' '.join(map(str, error.cmd))} ended with {error.returncode}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
