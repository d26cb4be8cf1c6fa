"""Fail the test in which a secret is shown: in a log, an object, an error, the arguments of a child, or a file.

Secrets of tests are made by `secret_value`, which puts a mark into each; what others make (a key, a token of a host) is
told by `know_secret`, and what is written into a Secret of a local plane is known by itself. After every test the mark
and those values, as they are and in base64, are looked for in

    logs        what was printed or captured, each phase of the test
    objects     every revision of every object of a local plane, but for Secrets
    errors      the texts of kardinal's own errors
    children    arguments and environment of every process that was started
    files       all files below `tmp_path`, unpacked where they are loose objects of Git

but not where a secret is kept: the database of a plane, and files that a test names by `keep_secret_in`. A test whose
subject is a value that is shown says so with the mark `shows_secrets` and a reason.
"""

from __future__ import annotations

import base64
import binascii
import os
import sys
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from structlog.testing import LogCapture

from kardinal.objects.errors import KardinalError
from kardinal_local.plane.storage.entries import Change

__all__ = ["keep_secret_in", "know_secret", "look_at_change", "secret_value", "watch"]

MARK = "vK3xq9ZtW7mRbP"
_SHORTEST = 12
"""Characters of a value that nothing else is likely to have."""
_SAME_IN_EVERY_KEY = ("-----", "b3BlbnNzaC1rZXktdjEA")
"""The first lines of a private key tell its format: another key, that of a server, begins with the same."""
_KUBECONFIG = "kubeconfig"
_KEPT_IN_SECRETS = frozenset(
    {"token", "password", "hmacKey", "webhookSecret", "ssh-privatekey", "privateKey", _KUBECONFIG}
)
_OF_USERS = ("token", "password", "client-key-data")
_DATABASE = "plane.db"
_SHOWS = "shows_secrets"
_LOOSE_NAME = 38
"""Characters of the name of a loose object of Git, after the two of its directory."""


def secret_value(name: str) -> str:
    """Return a secret that is recognised wherever it is shown."""
    return f"{MARK}-{name}"


class _Watch:
    """The secrets that this process knows, and the places where it has seen them since the last test."""

    def __init__(self) -> None:
        self._needles = _needles(MARK)
        self._known: dict[str, None] = {}
        self._kept: list[Path] = []
        self._captures: list[LogCapture] = []
        self._found: dict[str, str] = {}

    def know(self, value: str) -> None:
        for line in value.splitlines():
            told = MARK in line or line in self._known or line.startswith(_SAME_IN_EVERY_KEY)
            if len(line) >= _SHORTEST and not told:
                self._known[line] = None
                self._needles += _needles(line)

    def keep_in(self, path: Path) -> None:
        self._kept.append(path)

    def look(self, where: str, content: bytes) -> None:
        """Note that a secret is shown `where`, if one is."""
        for needle in self._needles:
            if (at := content.find(needle)) >= 0:
                before = content[max(at - 60, 0) : at].decode(errors="replace")
                self._found.setdefault(where, f"{before!r}, then a secret of {len(needle)} characters")
                return

    def look_at_text(self, where: str, text: str) -> None:
        self.look(where, text.encode(errors="replace"))

    def look_below(self, directory: Path) -> None:
        for path in _files(directory):
            if path.name.startswith(_DATABASE) or any(path.is_relative_to(kept) for kept in self._kept):
                continue
            with suppress(OSError):
                content = path.read_bytes()
                if len(path.name) == _LOOSE_NAME:
                    with suppress(zlib.error):
                        content = zlib.decompress(content)
                self.look(f"file {path.relative_to(directory)}", content)

    def capture(self, capture: LogCapture) -> None:
        self._captures.append(capture)

    def take(self) -> list[str]:
        """Return what was found since the last time."""
        for capture in self._captures:
            for entry in capture.entries:
                self.look_at_text("captured log", repr(entry))
        self._captures.clear()
        found = [f"{where}: {how}" for where, how in self._found.items()]
        self._found.clear()
        return found

    def forget(self) -> None:
        """Forget the values and files of one test."""
        if self._known:
            self._needles = _needles(MARK)
        self._known.clear()
        self._kept.clear()


@cache
def _needles(value: str) -> tuple[bytes, ...]:
    """Return how a value looks in a text: itself, and in base64 at any place."""
    raw = value.encode()
    encoded = (
        base64.b64encode(bytes(offset) + raw)[(offset * 8 + 5) // 6 : (offset + len(raw)) * 8 // 6]
        for offset in range(3)
    )
    return raw, *encoded


def _files(directory: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(directory):
        for name in names:
            path = Path(parent, name)
            if path.is_file() and not path.is_symlink():
                yield path


watch = _Watch()
"""The one of this process."""


def know_secret(value: str) -> str:
    """Have a value taken for a secret for the rest of the test; returns it."""
    watch.know(value)
    return value


def keep_secret_in(path: Path) -> Path:
    """Have a file or directory taken for a place where secrets are kept, for the rest of the test; returns it."""
    watch.keep_in(path)
    return path


def look_at_change(change: Change) -> None:
    """Look at an object as it was written to a local plane."""
    entry = change.entry
    if entry.resource != "secrets":
        watch.look(f"{entry.resource} {entry.namespace}/{entry.name}", entry.raw)
        return
    data = orjson.loads(entry.raw).get("data") or {}
    for key in _KEPT_IN_SECRETS & data.keys():
        with suppress(binascii.Error, ValueError):
            value = base64.b64decode(data[key]).decode()
            for secret in _secrets_of_kubeconfig(value) if key == _KUBECONFIG else (value,):
                watch.know(secret)


def _secrets_of_kubeconfig(text: str) -> Iterator[str]:
    """Yield the credentials of a kubeconfig, whose other lines are no secrets."""
    try:
        users = yaml.safe_load(text)["users"]
        yield from (str(user["user"][key]) for user in users for key in _OF_USERS if key in user["user"])
    except (yaml.YAMLError, KeyError, TypeError):
        return


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen":
        _, command, _, environment = arguments
        words: Iterable[object] = command if isinstance(command, (list, tuple)) else [command]
        for word in words:
            watch.look("argument of a child", os.fsencode(word) if isinstance(word, (str, os.PathLike)) else b"")
        for name, value in (environment or {}).items():
            watch.look(f"environment of a child, {name}", os.fsencode(value))


@cache
def _listen() -> None:
    """Hear of every process that is started; nothing can be taken back from this interpreter."""
    sys.addaudithook(_audit)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{_SHOWS}(reason): shows a secret, because that is what it is about")


@pytest.fixture(scope="session", autouse=True)
def watch_for_secrets() -> Iterator[None]:
    """Watch children, errors and captured logs from the first test to the last."""
    _listen()
    made = KardinalError.__init__
    captured = LogCapture.__init__

    def make(self: KardinalError, message: str = "", **options: Any) -> None:
        made(self, message, **options)
        watch.look_at_text(f"error {type(self).__name__}", f"{message} {self.remedy}")

    def capture(self: LogCapture) -> None:
        captured(self)
        watch.capture(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KardinalError, "__init__", make)
        patch.setattr(LogCapture, "__init__", capture)
        yield


@pytest.fixture(autouse=True)
def no_secret_is_shown(request: pytest.FixtureRequest, watch_for_secrets: None) -> Iterator[None]:
    """Fail the test in which a secret is shown; what is printed is looked at when all its phases are over."""
    directory: Path | None = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    yield
    mark = request.node.get_closest_marker(_SHOWS)
    if directory is not None and mark is None:
        watch.look_below(directory)
    found = watch.take()
    if found and mark is None:
        pytest.fail("a secret is shown in " + "; ".join(found), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report: pytest.TestReport = yield
    if call.when == "teardown":
        for title, content in report.sections:
            watch.look_at_text(title, content)
        found = watch.take()
        watch.forget()
        if found and report.passed and item.get_closest_marker(_SHOWS) is None:
            report.outcome = "failed"
            report.longrepr = "a secret is shown in " + "; ".join(found)
    return report
