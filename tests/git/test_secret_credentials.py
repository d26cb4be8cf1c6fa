"""Parts of a Secret that one kind of transfer reads, and Secrets that could only fail there."""

from __future__ import annotations

import base64
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from kardinal.git import GitCredentials
from kardinal.git.secret_credentials import UnusableSecret, credentials_of
from tests.support.smart_server import self_signed
from tests.support.ssh_server import new_key

KEY = new_key().private
HOSTS = "git.example.com ssh-ed25519 AAAA"


def secret(**data: str) -> dict[str, Any]:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"metadata": {"namespace": "team", "name": "git"}, "data": encoded}


def ssh_secret(key: str = KEY, hosts: str = HOSTS) -> dict[str, Any]:
    return secret(**{"ssh-privatekey": key, "known_hosts": hosts, "username": "robot", "password": "hunter2"})


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> str:
    return self_signed(tmp_path_factory.mktemp("authority")).read_text()


def test_a_transfer_gets_what_it_needs_and_no_more(authority: str) -> None:
    both = ssh_secret()
    assert credentials_of(both, "ssh") == GitCredentials(private_key=KEY, known_hosts=f"{HOSTS}\n")
    assert credentials_of(both, "https") == GitCredentials("robot", "hunter2")
    assert credentials_of(secret(token="t\n"), "https") == GitCredentials("git", "t")
    assert credentials_of(secret(username="robot", token="t"), "http") == GitCredentials("robot", "t")


def test_an_authority_alone_is_enough_for_what_anyone_may_read(authority: str) -> None:
    certificate = authority[authority.index("-----BEGIN CERT") :]
    found = credentials_of(secret(**{"ca.crt": certificate}), "https")
    assert (found.username, found.password, found.authority) == ("", "", certificate)


def test_a_key_whose_last_line_has_no_end_is_given_one() -> None:
    found = credentials_of(ssh_secret(KEY.strip().replace("\n", "\r\n")), "ssh")
    assert found.private_key == KEY


def encrypted() -> str:
    key = rsa.generate_private_key(65537, 2048)
    words = serialization.BestAvailableEncryption(b"hunter2")
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, words).decode()


def old_format() -> str:
    key = rsa.generate_private_key(65537, 2048)
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, plain).decode()


def test_a_key_in_the_older_format_is_accepted() -> None:
    key = old_format()
    assert credentials_of(ssh_secret(key), "ssh").private_key == key


@pytest.mark.parametrize(
    ("made", "scheme", "problem"),
    [
        (secret(username="robot"), "https", "has neither username and password nor token"),
        (secret(**{"ssh-privatekey": KEY}), "https", "has neither username and password nor token"),
        (secret(token="t"), "ssh", "has no known_hosts"),
        (ssh_secret(hosts="# no host\n"), "ssh", "has no known_hosts"),
        (ssh_secret(key=""), "ssh", "has no ssh-privatekey"),
        (ssh_secret(key="hunter2"), "ssh", "that is no private key"),
        (ssh_secret(key=new_key().public), "ssh", "that is no private key"),
        (ssh_secret(key=encrypted()), "ssh", "with a passphrase"),
        (secret(**{"token": "hunter2", "ca.crt": "hunter2"}), "https", "that holds no certificates in PEM"),
    ],
)
def test_a_secret_that_can_not_serve_says_why_and_shows_nothing(
    made: dict[str, Any], scheme: str, problem: str
) -> None:
    with pytest.raises(UnusableSecret, match=problem) as caught:
        credentials_of(made, scheme)
    assert "Secret team/git" in caught.value.message
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
def test_a_key_with_a_passphrase_in_the_format_of_openssh_is_told_apart(tmp_path: Path) -> None:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "hunter2", "-f", str(tmp_path / "key")]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    with pytest.raises(UnusableSecret, match="with a passphrase"):
        credentials_of(ssh_secret((tmp_path / "key").read_text()), "ssh")
