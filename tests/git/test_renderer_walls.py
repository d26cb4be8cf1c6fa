"""The walls around a renderer: what it can see of the agent, with and without rights of its own."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kardinal.processes.isolation import Walls, confine
from kardinal.rendering.programs import ProgramRenderer, environment_of
from tests.support.renderers import CHART, Rendered, helm, needs, program
from tests.support.without_rights import UNPRIVILEGED

BASH = "/bin/bash"
ROOT = Path(__file__).parents[2]
EVERYBODYS = "/tmp"  # noqa: S108 - each test makes a directory of its own in it
LOOKING_AROUND = """\
exec 2>/dev/null
reads() {{ if read -r line <"$2"; then echo "$1: read"; else echo "$1: refused"; fi; }}
lists() {{ if /bin/ls "$2" >/dev/null; then echo "$1: listed"; else echo "$1: refused"; fi; }}
connects() {{ if (exec 5<>"$2"); then echo "$1: connected"; else echo "$1: refused"; fi; }}
echo "environment:" $(/usr/bin/env | /usr/bin/cut -d= -f1 | /usr/bin/sort)
echo "files handed on:" $(for number in 3 4 5 6 7 8 9; do if true <&$number; then echo $number; fi; done)
reads "a file of the agent" {held}
lists "the directory of the agent" {directory}
reads "accounts of the machine" /etc/passwd
lists "the root directory" /
reads "environment of the agent" /proc/{agent}/environ
reads "memory of the agent" /proc/{agent}/mem
reads "its own environment by /proc" /proc/self/environ
lists "processes" /proc
if echo x >{directory}/left; then echo "a file left behind: written"; else echo "a file left behind: refused"; fi
/bin/cp /bin/true $TMPDIR/own
if $TMPDIR/own; then echo "a program it has brought: run"; else echo "a program it has brought: refused"; fi
connects "the agent by TCP" /dev/tcp/127.0.0.1/{port}
connects "UDP" /dev/udp/127.0.0.1/{port}
reads "what it renders" "$chart/Chart.yaml"
"""
SEEN = """\
environment: GOMEMLIMIT GOTRACEBACK HELM_NO_PLUGINS HOME HTTPS_PROXY HTTP_PROXY KUBECONFIG LC_ALL PATH PWD SHLVL \
TMPDIR _ http_proxy https_proxy
files handed on:
a file of the agent: refused
the directory of the agent: refused
accounts of the machine: refused
the root directory: refused
environment of the agent: refused
memory of the agent: refused
its own environment by /proc: refused
processes: refused
a file left behind: refused
a program it has brought: refused
the agent by TCP: refused
UDP: refused
what it renders: read
"""


@pytest.mark.usefixtures("walls")
async def test_a_renderer_sees_nothing_of_the_agent(
    rendered: Rendered, renderer: ProgramRenderer, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not os.path.exists(BASH):
        pytest.skip("needs bash, which opens sockets")
    held = tmp_path / "kubeconfig"
    held.write_text("users: []\n")
    monkeypatch.setenv("KUBECONFIG", str(held))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0)
        port = listening.getsockname()[1]
        script = LOOKING_AROUND.format(held=held, directory=tmp_path, agent=os.getpid(), port=port)
        program(programs, "helm", f"for chart; do :; done\n{script}", shell=BASH)
        output = (await rendered(CHART, lambda tree: helm(renderer, tree))).decode()
        sys.stdout.write(output)
        with pytest.raises(BlockingIOError):
            listening.accept()
    assert output == SEEN
    assert f"```text\n{SEEN}```" in (ROOT / "docs/security.md").read_text()
    assert not (tmp_path / "left").exists()


CALLS = """\
import ctypes, errno, json, mmap, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def answer(*arguments):
    ctypes.set_errno(0)
    return errno.errorcode.get(ctypes.get_errno(), "") if libc.syscall(*map(ctypes.c_long, arguments)) < 0 else "done"
def opened(family, kind):
    try:
        socket.socket(family, kind).close()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"
families = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16, "AF_PACKET": 17, "AF_VSOCK": 40}
found = {name: opened(number, 3 if number in (16, 17) else 1) for name, number in families.items()}
found["io_uring_setup"] = answer(425, 1, 0)
found["pidfd_getfd"] = answer(438, -1, 0, 0)
found["of x32"] = answer(0x40000000 | 39) if os.uname().machine == "x86_64" else "ENOSYS"
print(json.dumps(found), flush=True)
if os.uname().machine == "x86_64":
    code = mmap.mmap(-1, 4096, prot=7)
    code.write(bytes.fromhex("b814000000cd80c3"))  # getpid as a program of 32 bits asks for it
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
"""


def ran(output: Path, *arguments: str, network: bool = False, walls: Walls | None = None) -> tuple[int, str]:
    """Run this Python behind the seccomp filter alone: without Landlock it finds its library."""
    command = confine(
        [sys.executable, *arguments],
        programs=[sys.executable],
        home=output.parent,
        output=output,
        network=network,
        walls=walls or Walls(landlock="left out"),
    )
    done = subprocess.run(command, stderr=subprocess.PIPE, check=False)
    return done.returncode, output.read_text()


@pytest.mark.usefixtures("walls")
def test_no_socket_of_any_family_can_be_opened(tmp_path: Path) -> None:
    code, output = ran(tmp_path / "out", "-c", CALLS)
    found = json.loads(output)
    assert {found.pop(name) for name in list(found) if name.startswith("AF_")} == {"EACCES"}
    assert found == {"io_uring_setup": "ENOSYS", "pidfd_getfd": "EACCES", "of x32": "ENOSYS"}
    if platform.machine() == "x86_64":
        assert code == -signal.SIGSYS


@pytest.mark.usefixtures("walls")
def test_one_that_may_fetch_has_sockets_and_no_io_uring(tmp_path: Path) -> None:
    _, output = ran(tmp_path / "out", "-c", CALLS, network=True)
    found = json.loads(output)
    assert found["AF_INET"] == "done"
    assert found["io_uring_setup"] == "ENOSYS"


@pytest.mark.usefixtures("walls")
def test_one_that_may_fetch_runs_git_and_reads_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    held = tmp_path / "kubeconfig"
    home.mkdir()
    held.write_text("users: []\n")
    # The agent may have been started in a repository.
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.chdir(tmp_path)
    script = f"git init -q made && git ls-remote https://127.0.0.1:9/x; /bin/cat {held}"
    command = confine(
        ["/bin/sh", "-c", script], programs=["/bin/sh"], home=home, output=home / "out", network=True, walls=Walls()
    )
    environment = environment_of(home, 256 << 20, remote=True)
    done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, check=False)
    assert "Failed to connect to 127.0.0.1 port 9" in done.stderr
    assert f"{held}: Permission denied" in done.stderr
    assert (home / "made/.git/HEAD").exists()
    assert (home / "out").read_text() == ""


@pytest.mark.usefixtures("walls")
def test_a_wall_that_is_missing_is_told_and_the_other_one_stands(tmp_path: Path) -> None:
    kernel = Walls(landlock="Function not implemented")
    assert kernel.missing == "Landlock cannot be had (Function not implemented), so they can read what this process can"
    code, output = ran(tmp_path / "out", "-c", "import socket; open('/etc/hostname'); socket.socket()", walls=kernel)
    assert (code, output) == (1, "")
    assert Walls().missing == ""


def startable(python: str) -> bool:
    """Return whether a user without rights can start a Python, where this test may become one."""
    user = UNPRIVILEGED if os.getuid() == 0 else None
    try:
        done = subprocess.run([python, "-I", "-c", ""], cwd="/", check=False, user=user)
    except OSError:
        return False
    return done.returncode == 0


@pytest.mark.usefixtures("walls")
@pytest.mark.parametrize(
    ("options", "missing"),
    [
        ((), ""),
        (("without-landlock",), Walls(landlock="Operation not permitted").missing),
    ],
)
def test_both_render_without_rights_under_the_profile_of_container_runtimes(
    programs: Path, options: tuple[str, ...], missing: str
) -> None:
    needs(programs, "kustomize", "helm")
    if platform.machine() != "x86_64":
        pytest.skip("the profile is written down for x86_64")
    python = next(filter(startable, (sys.executable, "/usr/bin/python3")), None)
    if python is None:
        pytest.skip("another user cannot run any Python of this machine")
    # Not below pytest's directory, which is that of one user.
    with tempfile.TemporaryDirectory(prefix="kardinal-programs-", dir=EVERYBODYS) as made:
        Path(made).chmod(0o755)
        for name in ("kustomize", "helm"):
            shutil.copy(programs / name, made)
        command = [sys.executable, "-B", "-m", "tests.support.without_rights", made, python, *options]
        environment = os.environ | {"TMPDIR": EVERYBODYS}
        done = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr.decode()
    result = json.loads(done.stdout)
    assert result["missing"] == missing
    assert (result["CapEff"], result["CapPrm"], result["Seccomp"]) == ("0" * 16, "0" * 16, "2")
    assert result["Uid"] == str(UNPRIVILEGED if os.getuid() == 0 else os.getuid())
    assert "image: r/web:2" in result["kustomize"]
    assert "image: 'r/web:1'" in result["helm"]
