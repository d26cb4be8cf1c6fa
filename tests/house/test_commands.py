"""The command that tests call, and the one that a person calls, do the same."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import INSTALLED, KARDINAL

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: silent
contexts: [{{name: silent, context: {{cluster: silent, user: silent}}}}]
clusters: [{{name: silent, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: silent, user: {{}}}}]
"""
pytestmark = pytest.mark.usefixtures("commands")


def _outcome(program: Path, directory: Path, *arguments: str) -> tuple[int, bytes, bytes]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "LANG": "C.UTF-8"}
    done = subprocess.run(
        [program, *arguments],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("lint", "-f", "given.yaml"),
        ("get", "pipelines"),
        ("lint", "", "\udcff", "a b\n"),
    ],
    ids=str,
)
def test_both_print_the_same_and_end_with_the_same_code(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "given.yaml").write_text("apiVersion: kardinal.io/v1alpha1\nkind: Pipeline\nmetadata: {name: é}\n")
    assert _outcome(KARDINAL, tmp_path, *arguments) == _outcome(INSTALLED, tmp_path, *arguments)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_a_signal_ends_the_command(tmp_path: Path, number: signal.Signals, code: int) -> None:
    reader, writer = os.pipe()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(30)
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(KUBECONFIG.format(port=silent.getsockname()[1]))
        command = (KARDINAL, "get", "pipelines", "--kubeconfig", kubeconfig)
        with subprocess.Popen(command, stdout=writer, stderr=subprocess.DEVNULL) as process, silent.accept()[0]:
            os.close(writer)
            process.send_signal(number)
            # It ends when the last process that could write to it has ended.
            with os.fdopen(reader) as printed:
                assert printed.read() == ""
    assert process.returncode == code
