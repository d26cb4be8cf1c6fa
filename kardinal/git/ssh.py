"""Transfers over ssh: the command that `git` runs for it, and the errors for its failures.

OpenSSH closes every inherited file, but reads keys by path. So it gets the paths of the private files that its parent,
`git`, holds, such as `/proc/$PPID/fd/20`. It has no configuration, no agent and no terminal, and connects only to a
host whose key it was given.
"""

from __future__ import annotations

import re
import shlex
import shutil

from kardinal.git.errors import (
    AuthenticationFailed,
    GitError,
    ProgramMissing,
    RepositoryUnreachable,
    TransientGitError,
)
from kardinal.git.meaning import refused_credentials
from kardinal.processes.private_files import PrivateFile

__all__ = ["failure_over_ssh", "ssh_command"]

_CONNECT_TIMEOUT = 10
_ALIVE_INTERVAL = 15
_ALIVE_COUNT = 4
"""The time in seconds between two keep-alive requests, and the most of them that may stay unanswered."""

_OPTIONS = {
    "BatchMode": "yes",
    "StrictHostKeyChecking": "yes",
    "GlobalKnownHostsFile": "/dev/null",
    "UpdateHostKeys": "no",
    "IdentitiesOnly": "yes",
    "IdentityAgent": "none",
    "PreferredAuthentications": "publickey",
    "ControlPath": "none",
    "ClearAllForwardings": "yes",
    "ConnectTimeout": str(_CONNECT_TIMEOUT),
    "ServerAliveInterval": str(_ALIVE_INTERVAL),
    "ServerAliveCountMax": str(_ALIVE_COUNT),
}

_UNKNOWN_HOST = re.compile(r"host key verification failed|host identification has changed", re.I)
_NO_NETWORK = re.compile(r"could not resolve hostname|connect to host|connection (refused|timed out)|no route", re.I)
_DENIED_KEY = re.compile(r"permission denied \([\w,-]+\)|too many authentication failures", re.I)
_DENIED = re.compile(r"denied|not (authori[sz]ed|allowed)|unauthori[sz]ed|read[ -]only|forbidden", re.I)
_ABSENT = re.compile(
    r"does not appear to be a git repository|^(?>.*?(?:repository|project|path)\b).*\b(not (be )?found|does not exist)"
    r"|no such (file|repository|project)|cannot find repository",
    re.I | re.M,
)
_LOST = re.compile(r"could not read from remote repository|hung up|closed by|connection (reset|closed)|early EOF", re.I)
_NO_USER = re.compile(r"no user exists for uid", re.I)


def ssh_command(private_key: PrivateFile, known_hosts: PrivateFile, *, address: str = "", known_as: str = "") -> str:
    """Return the command that `git` runs for ssh, with the two private files; raises `ProgramMissing`.

    `address` is connected to instead of the host, while the host key is looked up under `known_as`, such as
    `[host]:2222`.
    """
    program = shutil.which("ssh")
    if program is None:
        raise ProgramMissing(
            "this machine has no ssh program, which ssh:// repositories need",
            remedy="Install the OpenSSH client where this program runs, or use https://",
        )
    pinned = {"HostName": address, "HostKeyAlias": known_as} if address else {}
    options = " ".join(f"-o {shlex.quote(f'{name}={value}')}" for name, value in {**_OPTIONS, **pinned}.items())
    files = f"-i {private_key.word} -o UserKnownHostsFile={known_hosts.word}"
    # A shell runs it, whose parent is `git`.
    return f"exec {shlex.quote(program)} -F /dev/null -T {options} {files}"


def failure_over_ssh(text: str, url: str) -> Exception | None:
    """Return the error for a failed transfer from the messages of ssh and of the host; None if they are unknown."""
    if _UNKNOWN_HOST.search(text):
        return RepositoryUnreachable(
            f"the host key of {url} is not the one in known_hosts of the Secret",
            remedy="Compare the output of ssh-keyscan with what the host publishes, and put it there",
        )
    if _NO_USER.search(text):
        return GitError(
            "ssh refuses to run, because the user id of this process has no name",
            remedy="Run the container with the user of its image, or use https://",
        )
    if _DENIED_KEY.search(text):
        return refused_credentials(url)
    if _NO_NETWORK.search(text):
        return RepositoryUnreachable(
            f"{url} can not be reached", remedy="Check the host name and the network", transient=True
        )
    if _ABSENT.search(text):
        return RepositoryUnreachable(
            f"{url} does not exist, or is not visible with this key",
            remedy="Correct the URL, or name a Secret with access in secretRef",
            transient=True,
        )
    if _LOST.search(text):
        if _DENIED.search(text):
            return AuthenticationFailed(
                f"{url} does not allow this", remedy="Give the key of git.secretRef read and write access"
            )
        return TransientGitError(f"the connection to {url} was lost, or it did not answer in time")
    return None
