"""A real sshd on loopback with keys of its own, where the machine has one; its user is the one of the tests."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["KeyPair", "SshServer", "find_sshd", "new_key", "serving_ssh"]


@dataclass(frozen=True)
class KeyPair:
    """A key as OpenSSH writes it: the file of the private one, the line of the public one."""

    private: str
    public: str


@dataclass(frozen=True)
class SshServer:
    """A running server."""

    port: int
    known_hosts: str
    user: str
    log: Path
    """The log of sshd, with a line for each connection and the address that it was made to."""

    def url(self, path: Path, *, host: str = "127.0.0.1") -> str:
        return f"ssh://{self.user}@{host}:{self.port}{path}"

    def connections(self, address: str) -> int:
        """Return how many connections were made to an address of the server."""
        return self.log.read_text().count(f" on {address} port {self.port} ")


def new_key() -> KeyPair:
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return KeyPair(private.decode(), public.decode())


def find_sshd() -> str | None:
    """Return the path of an sshd, which is often outside of PATH."""
    return shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/lib/ssh")


@contextmanager
def serving_ssh(directory: Path, authorized: str, *, addresses: Sequence[str] = ("127.0.0.1",)) -> Iterator[SshServer]:
    """Run a server, at addresses of this machine, that lets one public key in."""
    program = find_sshd()
    assert program is not None
    directory.mkdir()
    host = new_key()
    (directory / "host_key").write_text(host.private)
    (directory / "host_key").chmod(0o600)
    (directory / "authorized_keys").write_text(f"{authorized}\n")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    lines = [
        *(f"ListenAddress {address}:{port}" for address in addresses),
        f"HostKey {directory}/host_key",
        f"AuthorizedKeysFile {directory}/authorized_keys",
        "PidFile none",
        "LogLevel VERBOSE",
        "StrictModes no",
        "UsePAM no",
        "PermitRootLogin prohibit-password",
        # Without the user's own settings: a .bashrc is read for every command, and some take longer than a transfer.
        f"SetEnv HOME={directory}",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
    ]
    (directory / "config").write_text("\n".join(lines) + "\n")
    log = directory / "log"
    with log.open("wb") as file:
        process = subprocess.Popen([program, "-D", "-e", "-f", f"{directory}/config"], stderr=file)
    try:
        _await_listening(log, [f"listening on {address} port {port}." for address in addresses], process)
        yield SshServer(port, f"[127.0.0.1]:{port} {host.public}\n", getpass.getuser(), log)
    finally:
        process.terminate()
        process.wait()


def _await_listening(log: Path, listening: Sequence[str], process: subprocess.Popen[bytes]) -> None:
    """Wait until the log says that the server listens: a connection of ours would be logged, and counted, later."""
    until = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < until:
        text = log.read_text()
        if all(line in text for line in listening):
            return
        time.sleep(0.01)
    raise AssertionError("sshd does not start")
