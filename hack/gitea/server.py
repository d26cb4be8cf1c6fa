"""A real Gitea over HTTPS for the length of a `with` block, with an authority of its own and one administrator.

Gitea refuses to run as root, so that as root it runs as another user, for whom the program and its files are copied:
the cache of builds may be out of that user's reach.
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


class GiteaFailed(Exception):
    """Gitea did not come up; the text holds the end of its log."""


@dataclass(frozen=True, slots=True, repr=False)
class RunningGitea:
    """The address, the authority of the certificate in PEM form, and the token of the administrator."""

    url: str
    authority: str
    token: str
    directory: Path

    @property
    def log(self) -> str:
        """Return what it has logged."""
        return (self.directory / "gitea.log").read_text(errors="replace")


@contextmanager
def running_gitea() -> Iterator[RunningGitea]:
    """Run Gitea in a directory of its own, which goes with it; it answers when this yields."""
    # The temporary directory of a test run may be out of another user's reach.
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
    """Return the token of a new administrator."""
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
    return {"PATH": os.environ["PATH"], "HOME": str(directory), "USER": name}


def _user(directory: Path) -> pwd.struct_passwd | None:
    """Return the user to run as, to whom the directory is given; None to stay who we are."""
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
