"""Run a real Gitea over HTTPS during a `with` block, with its own certificate authority and one administrator.

Gitea refuses to run as root. So if this process is root, Gitea runs as another user; the program and its files are
copied for it, because that user may not be able to read the cache of builds.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.gitea.assets import GITEA
from hack.kube.assets import obtain
from hack.kube.certificates import write_certificates

__all__ = ["ADMINISTRATOR", "GiteaFailed", "RunningGitea", "running_gitea"]

ADMINISTRATOR = "administrator"
READY_SECONDS = 60.0
STOP_SECONDS = 20.0
_OTHER_USER = "nobody"
_OPEN_TO_ALL = "/var/tmp"  # noqa: S108

_CONFIGURATION = """\
APP_NAME = Gitea under test
RUN_MODE = prod
WORK_PATH = {directory}
[server]
PROTOCOL = https
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {port}
ROOT_URL = {url}/
CERT_FILE = {directory}/server.crt
KEY_FILE = {directory}/server.key
STATIC_ROOT_PATH = {directory}/static
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = {directory}/gitea.db
SQLITE_JOURNAL_MODE = WAL
[security]
INSTALL_LOCK = true
PASSWORD_HASH_ALGO = pbkdf2$1000$10
[service]
DISABLE_REGISTRATION = true
[repository]
DEFAULT_BRANCH = main
[webhook]
ALLOWED_HOST_LIST = loopback
DELIVER_TIMEOUT = 5
[cron]
ENABLED = false
[log]
MODE = console
LEVEL = warn
"""


_GARBAGE = {"GOGC": "off", "GOMEMLIMIT": "300MiB"}
"""Garbage is collected once the memory is used up: each push starts three programs, which end long before."""


class GiteaFailed(Exception):
    """Gitea did not start; the message has the end of its log."""


@dataclass(frozen=True, slots=True, repr=False)
class RunningGitea:
    """A running Gitea: its URL, the PEM certificate of its authority, and the token of the administrator."""

    url: str
    authority: str
    token: str
    directory: Path

    @property
    def log(self) -> str:
        """Return the log of Gitea."""
        return (self.directory / "gitea.log").read_text(errors="replace")


@contextmanager
def running_gitea() -> Iterator[RunningGitea]:
    """Run Gitea in a temporary directory; it serves requests when this yields. Raises `GiteaFailed`."""
    # Another user may not be able to reach the temporary directory of a test run.
    place = _OPEN_TO_ALL if os.getuid() == 0 else None
    with (
        tempfile.TemporaryDirectory(prefix="kardinal-gitea-", dir=place) as name,
        _running(Path(name), obtain(GITEA)) as running,
    ):
        yield running


@contextmanager
def _running(directory: Path, built: Path) -> Iterator[RunningGitea]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"https://127.0.0.1:{port}"
    write_certificates(directory)
    (directory / "app.ini").write_text(_CONFIGURATION.format(directory=directory, port=port, url=url))
    (directory / "static").mkdir()
    for name in GITEA.files:
        shutil.copytree(built / name, directory / "static" / name)
    shutil.copy(built / "gitea", directory / "gitea")
    user = _user(directory)
    authority = (directory / "ca.crt").read_text()
    with (directory / "gitea.log").open("wb") as log:
        process = subprocess.Popen(
            _command(directory, "web"), env=_environment(directory, user), stdout=log, stderr=log, **_as(user)
        )
        try:
            _await(url, authority, process, directory)
            token = _administrator(directory, user)
            yield RunningGitea(url, authority, token, directory)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _administrator(directory: Path, user: pwd.struct_passwd | None) -> str:
    """Create an administrator, and return its token."""
    arguments = ("admin", "user", "create", "--admin", "--username", ADMINISTRATOR, "--email", "a@example.org")
    secret = ("--password", secrets.token_urlsafe(16), "--must-change-password=false")
    token = ("--access-token", "--access-token-scopes", "all")
    done = subprocess.run(
        _command(directory, *arguments, *secret, *token),
        env=_environment(directory, user),
        capture_output=True,
        text=True,
        check=False,
        **_as(user),
    )
    if done.returncode != 0:
        raise GiteaFailed(f"no administrator was made: {done.stdout[-500:]}{done.stderr[-500:]}")
    return str(done.stdout.split()[-1])


def _command(directory: Path, *arguments: str) -> list[str]:
    return [str(directory / "gitea"), "--config", str(directory / "app.ini"), *arguments]


def _environment(directory: Path, user: pwd.struct_passwd | None) -> dict[str, str]:
    name = user.pw_name if user is not None else pwd.getpwuid(os.getuid()).pw_name
    return {"PATH": os.environ["PATH"], "HOME": str(directory), "USER": name, **_GARBAGE}


def _user(directory: Path) -> pwd.struct_passwd | None:
    """Return the user to run Gitea as, after making it the owner of the directory; None for the present user."""
    if os.getuid() != 0:
        return None
    user = pwd.getpwnam(_OTHER_USER)
    for path in (directory, *directory.rglob("*")):
        os.chown(path, user.pw_uid, user.pw_gid)
    return user


def _as(user: pwd.struct_passwd | None) -> dict[str, Any]:
    return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _await(url: str, authority: str, process: subprocess.Popen[bytes], directory: Path) -> None:
    context = ssl.create_default_context(cadata=authority)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    ends = time.monotonic() + READY_SECONDS
    while True:
        try:
            with urllib.request.urlopen(f"{url}/api/v1/version", context=context, timeout=5):  # noqa: S310
                return
        except OSError:
            if process.poll() is not None or time.monotonic() > ends:
                tail = (directory / "gitea.log").read_text(errors="replace")[-2000:]
                raise GiteaFailed(f"Gitea does not answer at {url}; the end of its log:\n{tail}") from None
            time.sleep(0.05)
