"""Transfers by the `git` program.

It runs without the configuration of its user and of its machine, cannot ask anyone, runs no hook and speaks the
protocol of its URL alone. Credentials are in files without a name that it inherits, one of them as its configuration:
neither its arguments nor its environment hold them. They are sent with the first request, to the host of the URL only,
and redirects come back to us (`redirects`). Everything that is decided about an answer comes from the trace, which Git
writes for programs: the phase of the transfer and the HTTP headers, without those of ours. Over ssh there is no such
trace, and the words of both sides are read (`ssh`).
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from kardinal.api.names import PROPOSALS
from kardinal.api.repository_url import DEFAULT_PORTS
from kardinal.git.addresses import Found, HostAddresses, literal
from kardinal.git.child import Children, Ended, private_file
from kardinal.git.credentials import Credentials
from kardinal.git.errors import DamagedRepository
from kardinal.git.meaning import Expected, failure_of, for_status, no_credentials, refused_push
from kardinal.git.names import HEADS
from kardinal.git.redirects import Redirected
from kardinal.git.ssh import failure_over_ssh, ssh_command

__all__ = ["GitProgram", "find_git"]

_PROPOSALS = f"{HEADS}{PROPOSALS}"
_OLDEST = (2, 39)
_REMOTE = "origin"
_FETCH = ("--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--quiet", "--no-recurse-submodules")
_OBJECTS = 1_000
"""Objects asked for at once, as arguments."""
_NO_REF = re.compile(r"couldn't find remote ref (\S+)")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_BLOCK = 512
_EMPTY_DIRECTORY = "refs/tags"
"""A directory of the mirror in which no certificate is, only ids: without one, those of the machine are trusted too."""
_VERSION = re.compile(r"git version (\d+)\.(\d+)")
_STATUS = re.compile(r"<= Recv header: HTTP/\S+ (\d{3})")
_LOCATION = re.compile(r"<= Recv header: location: *(.*)", re.I)
_ADVERTISED = re.compile(r'"region_leave".*"label":"(remote_refs|get_refs_list)"|"child_start".*"index-pack"')
"""Single objects are asked for without a list: then it is the first byte of the pack that counts."""
_PORCELAIN = re.compile(r"^([ +*=!-])\t[^\t:]*:([^\t]+)\t(.*)$", re.M)
_SAID = re.compile(r"^remote: (.*)$", re.M)
_SETTINGS = """\
[protocol]
	allow = never
[core]
	hooksPath = /dev/null
	packedGitWindowSize = 32m
	packedGitLimit = 256m
	bigFileThreshold = 16m
[credential]
	helper =
[gc]
	auto = 0
[maintenance]
	auto = false
[fetch]
	unpackLimit = 1
	writeCommitGraph = false
[pack]
	threads = 1
	windowMemory = 64m
[push]
	followTags = false
"""


def find_git() -> str | None:
    """Return the path of a `git` that is recent enough, where the system can run it as described above."""
    found = shutil.which("git") if sys.platform == "linux" else None
    if found is None:
        return None
    version = _VERSION.match(_answer(found, "version"))
    if version is None or (int(version[1]), int(version[2])) < _OLDEST:
        return None
    # Some packages leave out what speaks https.
    return (
        found if os.access(os.path.join(_answer(found, "--exec-path").strip(), "git-remote-https"), os.X_OK) else None
    )


def _answer(program: str, question: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - found on our own PATH
            [program, question], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


class _Trace:
    """The events of one transfer."""

    def __init__(self) -> None:
        self.advertised = False
        self.received: int | None = None
        self.status = 0
        self.location = ""
        self.quotable = True

    def feed(self, line: str) -> None:
        if found := _STATUS.search(line):
            self.status, self.location = int(found[1]), ""
        elif found := _LOCATION.search(line):
            self.location = found[1].strip()
        elif _ADVERTISED.search(line):
            self.advertised = True


class GitProgram:
    """Makes the transfers of one mirror with `git`."""

    def __init__(
        self,
        program: str,
        mirror: str,
        credentials: Credentials | None,
        children: Children,
        addresses: HostAddresses | None,
    ) -> None:
        self._program = program
        self._mirror = mirror
        self._credentials = credentials or Credentials()
        self._children = children
        self._addresses = addresses

    def fetch(self, url: str, refs: Sequence[str], *, whole: bool) -> Sequence[str]:
        """Make references of the mirror those of `url`; return those that it does not have."""
        options = (*_FETCH, "--prune", "--force", "--no-filter" if whole else "--filter=blob:none", _REMOTE)
        wanted, absent = list(refs), list[str]()
        while wanted:
            trace, ended = self._run(url, "fetch", *options, *map(_refspec, wanted))
            found = _NO_REF.search(ended.text)
            if ended.code == 0:
                break
            if found is None or found[1] not in wanted:
                raise self._failure(trace, ended, url)
            wanted.remove(found[1])
            absent.append(found[1])
        return absent

    def fetch_objects(self, url: str, ids: Sequence[str]) -> None:
        """Bring objects into the mirror."""
        for start in range(0, len(ids), _OBJECTS):
            # Nothing is negotiated: the host would take what the mirror has of the history for having all of it.
            settings = ("-c", "fetch.negotiationAlgorithm=noop")
            some = ids[start : start + _OBJECTS]
            trace, ended = self._run(url, *settings, "fetch", *_FETCH, "--filter=blob:none", _REMOTE, *some)
            if ended.code != 0:
                if "not allow request for unadvertised object" in ended.text or "not our ref" in ended.text:
                    raise DamagedRepository(f"{url} does not give single files")
                raise self._failure(trace, ended, url)

    def push(self, url: str, new: str | None, expected: Expected) -> None:
        """Move a reference of `url` from the expected commit to `new`; None deletes it."""
        options = ("--porcelain", "--no-verify", "--no-signed", "--no-recurse-submodules", "--no-progress")
        lease = f"--force-with-lease={expected.ref}:{expected.old or ''}"
        trace, ended = self._run(url, "push", *options, lease, url, f"{new or ''}:{expected.ref}", pushes=True)
        for flag, ref, summary in _PORCELAIN.findall(ended.text):
            if ref != expected.ref:
                continue
            if flag == "!":
                said = " ".join(_SAID.findall(ended.text))
                raise refused_push(_refusal(summary), said, url, expected, quoted=trace.quotable)
            if flag == "=":
                # It was there before this push: read again, and find what is our own.
                raise refused_push("stale info", "", url, expected)
            if ended.code == 0:
                return
        raise self._failure(trace, ended, url, pushing=expected)

    def try_push(self, url: str, expected: Expected) -> None:
        """Ask `url` for the right to move a reference, and leave it where it is."""
        options = ("--porcelain", "--dry-run", "--no-verify", "--no-recurse-submodules", "--no-progress")
        trace, ended = self._run(url, "push", *options, url, f"{expected.old}:{expected.ref}")
        if ended.code != 0:
            raise self._failure(trace, ended, url, pushing=expected)

    def _run(self, url: str, *arguments: str, pushes: bool = False) -> tuple[_Trace, Ended]:
        trace = _Trace()
        found = self._found(url)
        trace.quotable = found is None or found.quotable
        with contextlib.ExitStack() as files:
            numbers: list[int] = []

            def lend(content: str) -> int:
                numbers.append(files.enter_context(private_file(content.encode())))
                return numbers[-1]

            environment = {
                "PATH": os.environ.get("PATH", os.defpath),
                "HOME": "/nonexistent",
                "LC_ALL": "C",
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_CONFIG_GLOBAL": f"/proc/self/fd/{lend(self._configuration(url, lend, found))}",
                "GIT_ATTR_NOSYSTEM": "1",
                "GIT_TERMINAL_PROMPT": "0",
                "GIT_TRACE_CURL": "4",
                "GIT_TRACE_CURL_NO_DATA": "1",
                "GIT_TRACE_REDACT": "1",
                "GIT_TRACE2_EVENT": "4",
                **_proxies(),
            }
            if url.startswith("ssh://"):
                key, hosts = lend(self._credentials.private_key), lend(self._credentials.known_hosts)
                environment |= {"GIT_SSH_COMMAND": ssh_command(key, hosts, **_pinned(found)), "GIT_SSH_VARIANT": "ssh"}
            command = [self._program, f"--git-dir={self._mirror}", *arguments]
            ended = self._children.run(
                command, url=url, environment=environment, files=numbers, reader=trace, pushes=pushes
            )
        return trace, ended

    def _found(self, url: str) -> Found | None:
        """Return where a transfer connects to; None where a proxy finds the host, or any address will do."""
        name = urlsplit(url).hostname or ""
        if self._addresses is None or (literal(name) is None and not url.startswith("ssh://") and _proxies()):
            return None
        return self._addresses.find(url)

    def _configuration(self, url: str, lend: Callable[[str], int], found: Found | None) -> str:
        limits, parts = self._children.limits, urlsplit(url)
        lines = [
            f'[remote "{_REMOTE}"]',
            f"\turl = {_quoted(url)}",
            "\tpromisor = true",
            "\tpartialclonefilter = blob:none",
            f'[protocol "{parts.scheme}"]',
            "\tallow = always",
            "[http]",
            "\tfollowRedirects = false",
            f"\tlowSpeedLimit = {limits.rate}",
            f"\tlowSpeedTime = {limits.window}",
        ]
        if found is not None and literal(found.host) is None:
            addresses = ",".join(f"[{each}]" if ":" in each else each for each in found.addresses)
            lines.append(f"\tcurloptResolve = {found.host}:{found.port}:{addresses}")
        if self._credentials.authority:
            lines += [
                f"\tsslCAInfo = /proc/self/fd/{lend(self._credentials.authority)}",
                f"\tsslCAPath = {_quoted(os.path.join(self._mirror, _EMPTY_DIRECTORY))}",
            ]
        else:
            for key, variable in (("sslCAInfo", "SSL_CERT_FILE"), ("sslCAPath", "SSL_CERT_DIR")):
                if path := os.environ.get(variable):
                    lines.append(f"\t{key} = {_quoted(path)}")
        if self._credentials.password and parts.scheme != "ssh":
            pair = f"{self._credentials.username}:{self._credentials.password}".encode()
            header = f"Authorization: Basic {base64.b64encode(pair).decode()}"
            lines += [f'[http "{parts.scheme}://{parts.netloc}/"]', f"\textraHeader = {_quoted(header)}"]
        return _SETTINGS + "\n".join(lines) + "\n"

    def _failure(self, trace: _Trace, ended: Ended, url: str, *, pushing: Expected | None = None) -> Exception:
        if 300 <= trace.status < 400 and trace.location:
            return Redirected(trace.location)
        if trace.status == 401 and not self._credentials.password:
            return no_credentials(url)
        if trace.status >= 300:
            return for_status(trace.status, url)
        # Git itself says only that the program it started has not answered.
        text = "file size limit" if self._pack_is_too_large() else ended.text
        if url.startswith("ssh://") and (failure := failure_over_ssh(text, url)):
            return failure
        return failure_of(text, url, pushing=pushing)

    def _pack_is_too_large(self) -> bool:
        unfinished = Path(self._mirror, "objects", "pack").glob("tmp_pack_*")
        return any(pack.stat().st_size + _BLOCK > self._children.limits.file for pack in unfinished)


def _refspec(ref: str) -> str:
    # A branch of a proposal may not be there, and a pattern need not match; it lies where hardly others match it.
    pattern = f"{ref}*" if ref.startswith(_PROPOSALS) else ref
    return f"+{pattern}:{pattern}"


def _refusal(summary: str) -> str:
    """`[remote rejected] (words)` → `words`."""
    found = re.search(r"\((.*)\)\s*$", summary)
    return found[1] if found else summary


def _proxies() -> dict[str, str]:
    names: Sequence[str] = [*_PROXIES, *(name.upper() for name in _PROXIES)]
    return {name: os.environ[name] for name in names if name in os.environ}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _pinned(found: Found | None) -> dict[str, str]:
    """Return the address for ssh, which takes one: of IPv4 if there is one, as fewer networks have IPv6."""
    if found is None or literal(found.host) is not None:
        return {}
    address = next((each for each in found.addresses if ":" not in each), found.addresses[0])
    usual = found.port == DEFAULT_PORTS["ssh"]
    return {"address": address, "known_as": found.host if usual else f"[{found.host}]:{found.port}"}
