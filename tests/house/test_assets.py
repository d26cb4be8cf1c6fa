"""`make assets` finds, builds and refuses, tried with a compiler that only writes down that it was called."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hack.kube.assets import KUBERNETES

ROOT = Path(__file__).parents[2]

MODULES = 3
"""The control plane, the fake node and the Go client are built one by one."""

GO = """#!/bin/sh
case "$1" in
env) echo "$FAKE_GO_VERSION" ;;
list) echo "$FAKE_SOURCE" ;;
build)
    while [ "$1" != -o ]; do shift; done
    echo build >> "$FAKE_LOG"
    [ -n "$FAKE_BREAKS" ] && exit 1
    for name in server kube-apiserver kube-controller-manager kube-scheduler kubectl kwok goclient; do
        : > "$2$name"
    done ;;
esac
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return a machine whose Go compiles at once, and with nothing built."""
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text(GO)
    go.chmod(0o755)
    for name in ("mkdir", "sh"):
        found = shutil.which(name)
        assert found
        (tmp_path / "bin" / name).symlink_to(found)
    source = tmp_path / "source"
    for stage in ("node/fast/node-initialize", "node/heartbeat-with-lease/node-heartbeat-with-lease"):
        _touch(source / "kustomize" / "stage" / f"{stage}.yaml")
    for stage in ("pod-complete", "pod-delete", "pod-ready"):
        _touch(source / "kustomize" / "stage" / "pod" / "fast" / f"{stage}.yaml")
    return {
        "PATH": str(tmp_path / "bin"),
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "FAKE_GO_VERSION": "go1.26.1",
        "FAKE_SOURCE": str(source),
        "FAKE_LOG": str(tmp_path / "builds"),
    }


def _touch(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def make_assets(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hack.kube.assets"],
        cwd=ROOT,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=50,
    )


def builds(environment: dict[str, str]) -> int:
    log = Path(environment["FAKE_LOG"])
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_assets_are_built_once(environment: dict[str, str]) -> None:
    first = make_assets(environment)
    assert first.returncode == 0, first.stderr
    directory = Path(first.stdout.strip())
    kept = {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"}
    assert kept <= {path.name for path in directory.iterdir()}
    assert directory.is_relative_to(environment["XDG_CACHE_HOME"])
    second = make_assets(environment)
    assert (second.stdout, second.stderr) == (first.stdout, "")
    assert builds(environment) == MODULES


def test_another_compiler_builds_anew(environment: dict[str, str]) -> None:
    first = make_assets(environment)
    second = make_assets(environment | {"FAKE_GO_VERSION": "go1.27.0"})
    assert first.stdout != second.stdout
    assert builds(environment) == 2 * MODULES


def test_a_build_that_failed_leaves_nothing_that_looks_finished(environment: dict[str, str]) -> None:
    broken = make_assets(environment | {"FAKE_BREAKS": "yes"})
    assert broken.returncode == 1
    cache = Path(environment["XDG_CACHE_HOME"]) / "kardinal"
    assert [path for path in cache.iterdir() if path.is_dir()] == []
    assert make_assets(environment).returncode == 0


def test_two_builders_at_once_build_once(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "hack.kube.assets"]
    running = [subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait(50) for process in running] == [0, 0]
    assert builds(environment) == MODULES


def test_built_assets_need_no_compiler(environment: dict[str, str]) -> None:
    built = make_assets(environment)
    (Path(environment["PATH"]) / "go").unlink()
    found = _located(environment)
    assert str(Path(built.stdout.strip()) / "kube-apiserver") in found


@pytest.mark.parametrize("version", [None, "go1.25.9"], ids=["no Go", "an older Go"])
def test_without_a_compiler_it_says_what_is_needed(environment: dict[str, str], version: str | None) -> None:
    if version is None:
        (Path(environment["PATH"]) / "go").unlink()
    done = make_assets(environment | {"FAKE_GO_VERSION": version or ""})
    assert done.returncode == 1
    assert "Go ≥ 1.26 needed" in done.stderr
    assert KUBERNETES in done.stderr
    assert "KUBEBUILDER_ASSETS" in done.stderr


def test_programs_that_the_environment_names_come_first(environment: dict[str, str], tmp_path: Path) -> None:
    assert make_assets(environment).returncode == 0
    directory = tmp_path / "given"
    for name in ("etcd", "kube-apiserver"):
        _touch(directory / name)
    named = environment | {"KUBEBUILDER_ASSETS": str(directory), "TEST_ASSET_ETCD": "/elsewhere/etcd"}
    found = _located(named)
    assert f"{directory}/kube-apiserver" in found
    assert "/elsewhere/etcd" in found
    assert f"{directory}/etcd" not in found


def _located(environment: dict[str, str]) -> str:
    code = "from hack.kube.assets import locate; print(*locate().binaries.values(), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, check=True, capture_output=True, text=True, timeout=50
    )
    return done.stdout
