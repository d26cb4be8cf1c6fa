"""A secret that is shown fails the test that shows it, wherever it is."""

from __future__ import annotations

import pytest

from kardinal.kube import Client, load_connection
from kardinal.objects import EVENT, SECRET
from kardinal_local.plane import LocalPlane
from tests.support import secret_values
from tests.support.secret_values import know_secret, secret_value

LEAKS = {
    "print": ("print(SECRET)", "Captured stdout call"),
    "base64": ('print(base64.b64encode(f"robot:{SECRET}".encode()).decode())', "Captured stdout call"),
    "log": ("with capture_logs(): structlog.get_logger().info('sent', to=[SECRET])", "captured log"),
    "file": ("(tmp_path / 'config').write_text(SECRET)", "file config"),
    "object of git": (
        "(tmp_path / ('a' * 38)).write_bytes(zlib.compress(SECRET.encode()))",
        "file aaa",
    ),
    "argument": ("subprocess.run(['true', SECRET])", "argument of a child"),
    "environment": ("subprocess.run(['true'], env={'TOKEN': SECRET})", "environment of a child, TOKEN"),
    "error": ("str(KardinalError(f'refused {SECRET}'))", "error KardinalError"),
}

TESTS = """
import base64, subprocess, zlib
from pathlib import Path
import pytest, structlog
from structlog.testing import capture_logs
from kardinal.objects.errors import KardinalError
from tests.support.secret_values import know_secret, keep_secret_in, secret_value

SECRET = secret_value("planted")
"""

SILENT = """
def test_that_shows_nothing(tmp_path: Path) -> None:
    know_secret("a token that a host has made")
    keep_secret_in(tmp_path / "kept").write_text(SECRET)
    (tmp_path / "other").write_text("a token that a test made")

@pytest.mark.shows_secrets("that is what it is about")
def test_that_shows_it_on_purpose(tmp_path: Path) -> None:
    print(SECRET)

def test_that_comes_later(tmp_path: Path) -> None:
    print("a token that a host has made")
"""


def run(pytester: pytest.Pytester, source: str) -> pytest.RunResult:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(TESTS + source)
    return pytester.runpytest("-p", "tests.support.secret_values")


@pytest.mark.shows_secrets("plants them")
def test_each_planted_leak_is_found_and_nothing_else(pytester: pytest.Pytester) -> None:
    planted = (
        f"def test_{name.replace(' ', '_')}(tmp_path: Path) -> None:\n    {statement}\n"
        for name, (statement, _) in LEAKS.items()
    )
    result = run(pytester, SILENT + "\n".join(planted))
    outcomes = result.parseoutcomes()
    assert outcomes.get("failed", 0) + outcomes.get("errors", 0) == len(LEAKS)
    assert outcomes["passed"] >= 3
    result.stdout.fnmatch_lines_random([f"*a secret is shown in *{where}*" for _, where in LEAKS.values()])


async def test_every_revision_of_every_object_is_looked_at_and_secrets_are_learnt(plane: LocalPlane) -> None:
    def looked() -> list[str]:
        return [line.partition(":")[0] for line in secret_values.watch.take()]

    async with Client(await load_connection(plane.kubeconfig), user_agent="kardinal-test") as client:
        metadata = {"name": "git", "namespace": "default"}
        data = {"token": "made-by-the-host-0815", "username": "a-name-that-is-long"}
        await client.create(SECRET, {"metadata": metadata, "stringData": data | {"password": secret_value("pw")}})
        assert looked() == []
        for number, note in enumerate((f"sent {secret_value('pw')}", "sent made-by-the-host-0815", data["username"])):
            event = {
                "metadata": {"name": f"e{number}", "namespace": "default"},
                "note": note,
                "reason": "Sent",
                "action": "Send",
                "type": "Normal",
                "eventTime": "2026-03-03T10:00:00.000000Z",
                "reportingController": "test",
                "reportingInstance": "test",
                "regarding": {"kind": "Secret", "name": "git", "namespace": "default"},
            }
            await client.create(EVENT, event)
            await client.delete(EVENT, f"e{number}", "default")
    assert looked() == ["events default/e0", "events default/e1"]


async def test_credentials_of_a_kubeconfig_are_secret(plane: LocalPlane) -> None:
    users = "users: [{name: u, user: {token: a-token-of-a-cluster}}]"
    async with Client(await load_connection(plane.kubeconfig), user_agent="kardinal-test") as client:
        config = f"current-context: somewhere-else\n{users}\n"
        await client.create(
            SECRET, {"metadata": {"name": "far", "namespace": "default"}, "stringData": {"kubeconfig": config}}
        )
    secret_values.watch.look("a log", b"somewhere-else, current-context: somewhere-else")
    assert secret_values.watch.take() == []
    secret_values.watch.look("a log", b"a-token-of-a-cluster")
    assert len(secret_values.watch.take()) == 1


def test_the_first_line_of_a_key_is_that_of_every_key() -> None:
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n{}\n-----END OPENSSH PRIVATE KEY-----\n"
    same = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW"
    know_secret(key.format(same, "x" * 70))
    secret_values.watch.look("a file", key.format(same, "y" * 70).encode())
    assert secret_values.watch.take() == []
    secret_values.watch.look("a file", key.format(same, "x" * 70).encode())
    assert len(secret_values.watch.take()) == 1
