"""Transfers over ssh: how `git` is made to call it, and what its failures mean.

OpenSSH closes every file it inherits, but reads keys by path, so it is pointed at those that the git beside it holds:
files without a name, of which only the path below `/proc` is told. It has no configuration, no agent and no terminal,
and talks to no host whose key it was not given.
"""

from __future__ import annotations

import re
import shlex
import shutil

from kardinal.git.errors import AuthenticationFailed, GitError, RepositoryUnreachable, TransientGitError
from kardinal.git.meaning import refused_credentials

__all__ = ["failure_over_ssh", "ssh_command"]

_CONNECT_TIMEOUT = 10
_ALIVE_INTERVAL, _ALIVE_COUNT = 15, 4
"""Seconds between two questions whether the host is still there, and how many may stay without an answer."""

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
    r"does not appear to be a git repository|(repository|project|path)\b.*\b(not (be )?found|does not exist)"
    r"|no such (file|repository|project)|cannot find repository",
    re.I,
)
_LOST = re.compile(r"could not read from remote repository|hung up|closed by|connection (reset|closed)|early EOF", re.I)
_NO_USER = re.compile(r"no user exists for uid", re.I)


def ssh_command(private_key: int, known_hosts: int, *, address: str = "", known_as: str = "") -> str:
    """Return what `git` is to run for ssh, with the numbers of the two files that it holds; raises without an ssh.

    `address` is connected to in the place of the host, whose key stays the one that is `known_as`: `[host]:2222`.
    """
    program = shutil.which("ssh")
    if program is None:
        raise GitError(
            "this machine has no ssh program, which ssh:// repositories need",
            remedy="Install the OpenSSH client, or use https://",
        )
    pinned = {"HostName": address, "HostKeyAlias": known_as} if address else {}
    options = " ".join(f"-o {shlex.quote(f'{name}={value}')}" for name, value in {**_OPTIONS, **pinned}.items())
    files = f"-i /proc/$PPID/fd/{private_key} -o UserKnownHostsFile=/proc/$PPID/fd/{known_hosts}"
    # Run by a shell whose parent is that git.
    return f"exec {shlex.quote(program)} -F /dev/null -T {options} {files}"


def failure_over_ssh(text: str, url: str) -> Exception | None:
    """Return what a transfer that failed means, from the words of ssh and of the host; None if they say nothing."""
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
