"""Files that a command is pointed at may come from strangers: no link, pipe or endless text holds it up."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kardinal.cli import manifests
from tests.support.commands import KARDINAL

PIPELINE = """\
apiVersion: kardinal.io/v1alpha1
kind: Pipeline
metadata: {name: my-app}
spec: {git: {url: "https://git.example.com/acme/gitops"}, environments: [{name: dev}]}
"""
pytestmark = pytest.mark.usefixtures("commands")
MEMORY = 1 << 20
"""KiB of addresses that a command may take; a plain run takes a fifth of it."""


def kardinal(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command with bounded memory; one that does not end fails the test."""
    return subprocess.run(
        ["sh", "-c", f'ulimit -v {MEMORY}; exec "$@"', "sh", KARDINAL, *arguments],
        cwd=directory,
        env={"PATH": "/usr/bin:/bin", "HOME": str(directory), "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    directory = tmp_path / "checkout"
    directory.mkdir()
    (directory / "pipeline.yaml").write_text(PIPELINE)
    return directory


@pytest.mark.parametrize("place", [".", "device.yaml"])
def test_lint_reads_no_device_that_a_link_leads_to(checkout: Path, place: str) -> None:
    (checkout / "device.yaml").symlink_to("/dev/zero")
    done = kardinal(checkout, "lint", "-f", place)
    assert done.returncode == 1
    assert ("link to what is outside" if place == "." else "device.yaml is not a regular file") in done.stderr


def test_init_reads_no_device_either(checkout: Path) -> None:
    (checkout / "kardinal.yaml").symlink_to("/dev/zero")
    done = kardinal(checkout, "init", "-o", "yaml")
    assert (done.returncode, done.stdout) == (1, "")
    assert "kardinal.yaml is not a regular" in done.stderr


def test_a_pipe_without_a_writer_is_not_waited_for(checkout: Path) -> None:
    os.mkfifo(checkout / "pipe.yaml")
    done = kardinal(checkout, "lint", "-f", ".")
    assert done.returncode == 1
    assert "pipe.yaml is not a regular" in done.stderr


def test_a_link_out_of_a_directory_shows_no_line_of_what_it_leads_to(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text("token: [hunter2\n")
    (checkout / "device.yaml").symlink_to("../secret.yaml")
    (checkout / "below.yaml").symlink_to("pipeline.yaml")
    done = kardinal(checkout, "lint", "-f", ".")
    assert done.returncode == 1
    assert "device.yaml is a link to what is outside" in done.stderr
    assert "hunter2" not in done.stderr


def test_a_file_without_an_end_is_refused_by_its_size(checkout: Path) -> None:
    with (checkout / "sparse.yaml").open("wb") as file:
        file.truncate(1 << 40)
    done = kardinal(checkout, "lint", "-f", ".")
    (checkout / "sparse.yaml").unlink()
    assert done.returncode == 1
    assert "sparse.yaml has more than 16,777,216" in done.stderr


def test_a_text_that_would_take_the_memory_is_refused_by_both_commands(checkout: Path) -> None:
    # Deep enough to end a process that would parse it.
    (checkout / "kardinal.yaml").write_text("[" * 100_000)
    done = kardinal(checkout, "lint", "-f", "kardinal.yaml")
    assert done.returncode == 1
    assert "kardinal.yaml:1: not YAML" in done.stderr
    done = kardinal(checkout, "init", "-o", "yaml")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: kardinal.yaml is not YAML (line 1)")


@pytest.mark.parametrize(
    "text",
    [
        "a0: &a0 [x, x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)),
        "a0: &a0 {x: y}\n" + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 30)),
        "&a [*a]",
        f"{PIPELINE}status: &a {{a: *a}}\n",
        "[" + "a," * 10_000 + "]",
    ],
    ids=["aliases", "merges", "itself", "itself-in-a-resource", "many"],
)
def test_a_text_that_would_take_the_memory_is_not_read(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "_VALUES_LIMIT", 5_000)
    with pytest.raises(manifests.ManifestError) as refused:
        list(manifests.read_manifests(text))
    assert refused.value.line == 1
