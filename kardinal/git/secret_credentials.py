"""Read the credentials for one kind of transfer from a Secret, and refuse credentials that would fail there.

Only the parts that the transfer needs are read: an ssh key is not used for https, nor a password for ssh. Errors name
the Secret and its keys, never a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key
from cryptography.x509 import load_pem_x509_certificates

from kardinal.git import GitCredentials
from kardinal.git.signing import SshSigner, UnusableKey
from kardinal.objects.errors import KardinalError
from kardinal.objects.secrets import secret_text

__all__ = ["UnusableSecret", "credentials_of", "private_key_of", "signer_of"]

_TOKEN_USER = "git"  # noqa: S105 - hosts that take a token as the password ignore the name
_PRIVATE_KEY = "ssh-privatekey"


class UnusableSecret(KardinalError):
    """A Secret that lacks the keys it is used for, or has them in an unusable form."""

    def __init__(self, secret: Mapping[str, Any], problem: str) -> None:
        metadata = secret.get("metadata") or {}
        super().__init__(f"Secret {metadata.get('namespace')}/{metadata.get('name')} {problem}")


def credentials_of(secret: Mapping[str, Any], scheme: str) -> GitCredentials:
    """Return the parts of a Secret that a repository with this scheme needs; raises `UnusableSecret`.

    For https: `username` and `password`, or `token`; `ca.crt`, which may be given alone. For ssh: `ssh-privatekey` and
    `known_hosts`.
    """
    if scheme == "ssh":
        return _ssh_credentials(secret)
    username, password, token = (secret_text(secret, key).rstrip("\r\n") for key in ("username", "password", "token"))
    authority = _certificates(secret)
    if not (username and password):
        username, password = (username or _TOKEN_USER, token) if token else ("", "")
    if not (password or authority):
        raise UnusableSecret(secret, "has neither username and password nor token")
    return GitCredentials(username, password, authority=authority)


def _ssh_credentials(secret: Mapping[str, Any]) -> GitCredentials:
    known_hosts = _text_file(secret, "known_hosts")
    if not any(line.strip() and not line.startswith("#") for line in known_hosts.splitlines()):
        raise UnusableSecret(secret, "has no known_hosts, which ssh needs to know its host by")
    return GitCredentials(private_key=private_key_of(secret), known_hosts=known_hosts)


def signer_of(secret: Mapping[str, Any]) -> SshSigner:
    """Return a signer of commits with `ssh-privatekey` of a Secret; raises `UnusableSecret`."""
    try:
        return SshSigner(private_key_of(secret))
    except UnusableKey as error:
        raise UnusableSecret(secret, f"has a {_PRIVATE_KEY} of another kind: {error}") from None


def private_key_of(secret: Mapping[str, Any]) -> str:
    """Return `ssh-privatekey` of a Secret; raises `UnusableSecret` if the key is missing or has a passphrase."""
    text = _text_file(secret, _PRIVATE_KEY)
    if not text.strip():
        raise UnusableSecret(secret, f"has no {_PRIVATE_KEY}")
    load = load_ssh_private_key if "OPENSSH" in text.partition("\n")[0] else load_pem_private_key
    try:
        load(text.encode(), password=None)
    except TypeError:
        raise UnusableSecret(secret, f"has a {_PRIVATE_KEY} with a passphrase, which nobody can enter") from None
    except (ValueError, UnsupportedAlgorithm):
        raise UnusableSecret(secret, f"has a {_PRIVATE_KEY} that is no private key") from None
    return text


def _certificates(secret: Mapping[str, Any]) -> str:
    text = _text_file(secret, "ca.crt")
    if text.strip():
        try:
            load_pem_x509_certificates(text.encode())
        except ValueError:
            raise UnusableSecret(secret, "has a ca.crt that holds no certificates in PEM") from None
    return text.strip() and text


def _text_file(secret: Mapping[str, Any], key: str) -> str:
    """Return a value as the lines of a text file; OpenSSH requires the line end of the last one."""
    lines = secret_text(secret, key).replace("\r\n", "\n").strip()
    return f"{lines}\n"
