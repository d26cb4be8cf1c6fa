"""Make transfers with the `git` program.

It runs without the configuration of its user and machine, cannot prompt, runs no hook and speaks only the protocol of
its URL. Credentials are in private files (`private_files`), one of which is its configuration; neither its arguments
nor its environment contain them. They are sent with the first request, only to the host of the URL, and redirects are
returned to the caller (`redirects`). All decisions about an answer are based on the trace that Git writes for programs:
the phase of the transfer and the HTTP headers, without the headers of the request. Over ssh there is no such trace, so
the messages of both sides are parsed (`ssh`).
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from kardinal.git.addresses import CheckedHost, HostAddresses, literal
from kardinal.git.credentials import GitCredentials
from kardinal.git.errors import DamagedRepository, ProgramMissing
from kardinal.git.meaning import Expected, failure_of, for_status, no_credentials, refused_push
from kardinal.git.names import HEADS
from kardinal.git.redirects import Redirected
from kardinal.git.ssh import failure_over_ssh, ssh_command
from kardinal.git.transfers import Transfers
from kardinal.processes.children import BLOCK, Ended
from kardinal.processes.private_files import PrivateFiles
from kardinal.tree.git_names import PROPOSALS
from kardinal.tree.repository_url import DEFAULT_PORTS

__all__ = ["GitProgram", "find_git"]

_PROPOSALS = f"{HEADS}{PROPOSALS}"
_OLDEST = (2, 39)
_OLDEST_TEXT = ".".join(map(str, _OLDEST))
_REMOTE = "origin"
_FETCH = ("--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--quiet", "--no-recurse-submodules")
_OBJECTS = 1_000
"""The most objects requested at once, as arguments."""
_NO_REF = re.compile(r"couldn't find remote ref (\S+)")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_EMPTY_DIRECTORY = "refs/tags"
"""A directory of the mirror without certificates, only ids; without this setting, the machine's authorities are
trusted, too.
"""
_VERSION = re.compile(r"git version (\d+)\.(\d+)")
_STATUS = re.compile(r"<= Recv header: HTTP/\S+ (\d{3})")
_LOCATION = re.compile(r"<= Recv header: location: *(.*)", re.I)
_ADVERTISED = re.compile(
    r'^(?:(?>.*?"region_leave").*"label":"(remote_refs|get_refs_list)"|(?>.*?"child_start").*"index-pack")'
)
"""Single objects are requested without a list of references, so the first byte of the pack counts."""
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


def find_git() -> str:
    """Return the path of a `git` that is suitable for transfers; raises `ProgramMissing` if there is none."""
    found = shutil.which("git")
    if found is None:
        raise _missing(f"git program in version {_OLDEST_TEXT} or newer")
    return _checked(found)


@cache
def _checked(program: str) -> str:
    version = _VERSION.match(_answer(program, "version"))
    if version is None or (int(version[1]), int(version[2])) < _OLDEST:
        raise _missing(f"git program in version {_OLDEST_TEXT} or newer ({program} is older)")
    # Some packages lack the part of Git that speaks https.
    if not os.access(os.path.join(_answer(program, "--exec-path").strip(), "git-remote-https"), os.X_OK):
        raise _missing(f"git program that speaks https ({program} does not)")
    return program


def _missing(program: str) -> ProgramMissing:
    return ProgramMissing(
        f"this machine has no {program}, which repositories on other machines need",
        remedy="Install git where this program runs, as kardinal's images have it",
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
        self.status = 0
        self.location = ""
        self.quotable = True

    def feed(self, line: str) -> None:
        if found := _STATUS.search(line):
            self.status = int(found[1])
            self.location = ""
        elif found := _LOCATION.search(line):
            self.location = found[1].strip()
        elif _ADVERTISED.search(line):
            self.advertised = True


class GitProgram:
    """Make the transfers of one mirror with `git`."""

    def __init__(
        self,
        program: str,
        mirror: str,
        credentials: GitCredentials | None,
        transfers: Transfers,
        addresses: HostAddresses | None,
    ) -> None:
        self._program = program
        self._mirror = mirror
        self._credentials = credentials or GitCredentials()
        self._transfers = transfers
        self._addresses = addresses

    def fetch(self, url: str, refs: Sequence[str], *, whole: bool) -> Sequence[str]:
        """Fetch references of `url` into the mirror; return those that the remote does not have."""
        options = (*_FETCH, "--prune", "--force", "--no-filter" if whole else "--filter=blob:none", _REMOTE)
        wanted = list(refs)
        absent = list[str]()
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
        """Fetch objects into the mirror."""
        for start in range(0, len(ids), _OBJECTS):
            # Without negotiation, because the host would assume that the mirror has all objects of its history.
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
                # It was there before this push, so the caller reads again and finds its own commit.
                raise refused_push("stale info", "", url, expected)
            if ended.code == 0:
                return
        raise self._failure(trace, ended, url, pushing=expected)

    def try_push(self, url: str, expected: Expected) -> None:
        """Check whether a reference of `url` may be moved, without moving it."""
        options = ("--porcelain", "--dry-run", "--no-verify", "--no-recurse-submodules", "--no-progress")
        trace, ended = self._run(url, "push", *options, url, f"{expected.old}:{expected.ref}")
        if ended.code != 0:
            raise self._failure(trace, ended, url, pushing=expected)

    def _run(self, url: str, *arguments: str, pushes: bool = False) -> tuple[_Trace, Ended]:
        trace = _Trace()
        found = self._found(url)
        trace.quotable = found is None or found.quotable
        with PrivateFiles() as files:
            environment = {
                "PATH": os.environ.get("PATH", os.defpath),
                "HOME": "/nonexistent",
                "LC_ALL": "C",
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_CONFIG_GLOBAL": files.add(self._configuration(url, files, found)).path,
                "GIT_ATTR_NOSYSTEM": "1",
                "GIT_TERMINAL_PROMPT": "0",
                "GIT_TRACE_CURL": "4",
                "GIT_TRACE_CURL_NO_DATA": "1",
                "GIT_TRACE_REDACT": "1",
                "GIT_TRACE2_EVENT": "4",
                **_proxies(),
            }
            if url.startswith("ssh://"):
                key = files.add(self._credentials.private_key)
                hosts = files.add(self._credentials.known_hosts)
                environment |= {"GIT_SSH_COMMAND": ssh_command(key, hosts, **_pinned(found)), "GIT_SSH_VARIANT": "ssh"}
            command = [self._program, f"--git-dir={self._mirror}", *arguments]
            ended = self._transfers.run(
                command, url=url, environment=environment, files=files.numbers, reader=trace, pushes=pushes
            )
        return trace, ended

    def _found(self, url: str) -> CheckedHost | None:
        """Return the addresses to connect to; None if a proxy resolves the host, or any address is allowed."""
        name = urlsplit(url).hostname or ""
        if self._addresses is None or (literal(name) is None and not url.startswith("ssh://") and _proxies()):
            return None
        return self._addresses.find(url)

    def _configuration(self, url: str, files: PrivateFiles, found: CheckedHost | None) -> str:
        limits = self._transfers.limits
        parts = urlsplit(url)
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
                f"\tsslCAInfo = {_quoted(files.add(self._credentials.authority).path)}",
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
        # Git itself only says that the program it started has not answered.
        text = "file size limit" if self._pack_is_too_large() else ended.text
        if url.startswith("ssh://") and (failure := failure_over_ssh(text, url)):
            return failure
        return failure_of(text, url, pushing=pushing)

    def _pack_is_too_large(self) -> bool:
        unfinished = Path(self._mirror, "objects", "pack").glob("tmp_pack_*")
        return any(pack.stat().st_size + BLOCK > self._transfers.limits.file for pack in unfinished)


def _refspec(ref: str) -> str:
    # The branch of a proposal may not exist. A pattern need not match, and hardly any other branch matches this one.
    pattern = f"{ref}*" if ref.startswith(_PROPOSALS) else ref
    return f"+{pattern}:{pattern}"


def _refusal(summary: str) -> str:
    """Return `words` of `[remote rejected] (words)`."""
    _, opened, words = summary.rstrip().partition("(")
    return words[:-1] if opened and words.endswith(")") else summary


def _proxies() -> dict[str, str]:
    names: Sequence[str] = [*_PROXIES, *(name.upper() for name in _PROXIES)]
    return {name: os.environ[name] for name in names if name in os.environ}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _pinned(found: CheckedHost | None) -> dict[str, str]:
    """Return the address for ssh, which takes only one: an IPv4 address if possible, since fewer networks have IPv6."""
    if found is None or literal(found.host) is not None:
        return {}
    address = next((each for each in found.addresses if ":" not in each), found.addresses[0])
    usual = found.port == DEFAULT_PORTS["ssh"]
    return {"address": address, "known_as": found.host if usual else f"[{found.host}]:{found.port}"}
