"""A Git server of our own: `git http-backend` behind TLS, with a user, and with bad days on demand.

What answers is Git itself, so refusals, races and hooks are the real ones. `trouble` is consulted before each request
and may answer in Git's place.
"""

from __future__ import annotations

import base64
import http.server
import os
import select
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.renderers import program
from tests.support.secret_values import keep_secret_in, secret_value

USER = "robot"
PASSWORD = secret_value("robot")


class Exchange(http.server.BaseHTTPRequestHandler):
    """One request, handed to Git as CGI."""

    server: SmartServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.server.connections.append(self.connection)

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PATCH(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's word
        """Quiet."""

    def _answer(self) -> None:
        self.server.requests.append(f"{self.command} {self.path}")
        self.server.authorisations.append(self.headers.get("Authorization"))
        self.body = self._body()
        if not self.server.trouble(self, self.path.partition("?")[0]):
            self.serve()

    def serve(self) -> None:
        """Let Git answer a request that has the right credentials."""
        expected = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.headers.get("Authorization") == expected:
            self.send(self.ask_git())
        else:
            self.refuse(401, "WWW-Authenticate", 'Basic realm="git"')

    def ask_git(self) -> bytes:
        """Git's answer to this request; what it changes is changed from here on."""
        return git_answer(self._environment(), self.body)

    def git(self) -> subprocess.Popen[bytes]:
        """Start Git on this request, in a process group of its own."""
        git = subprocess.Popen(
            ["git", "http-backend"],
            env=self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert git.stdin is not None
        git.stdin.write(self.body)
        git.stdin.close()
        return git

    def _environment(self) -> dict[str, str]:
        path, _, query = self.path.partition("?")
        return {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.server.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "HOME": str(self.server.root),
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(self.body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": USER,
            "REMOTE_ADDR": "127.0.0.1",
        }

    def send(self, answer: bytes) -> None:
        """Pass on an answer of Git's."""
        head, _, content = answer.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def refuse(self, status: int, header: str = "X-Reason", value: str = "trouble") -> None:
        """Answer with a status and nothing else."""
        self.send_response(status)
        self.send_header(header, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))


def git_answer(environment: Mapping[str, str], body: bytes) -> bytes:
    """Return Git's answer to a CGI request.

    Fetches and pushes are answered by the programs that `git http-backend` would start by way of two more.
    """
    directory, _, request = environment["PATH_INFO"].partition(".git/")
    begins = request == "info/refs"
    service = environment["QUERY_STRING"].removeprefix("service=") if begins else request
    repository = Path(f"{environment['GIT_PROJECT_ROOT']}{directory}.git")
    config = repository / "config"
    settings = config.read_bytes() if config.is_file() else b""
    usual = environment["GIT_PROTOCOL"] == _PROTOCOLS.get(service) and not environment["HTTP_CONTENT_ENCODING"]
    if not (usual and settings) or (service == _PUSH and b"receivepack = false" in settings):
        return _output(["git", "http-backend"], environment, body)
    option = "--http-backend-info-refs" if begins else "--stateless-rpc"
    command = ["git", service.removeprefix("git-"), option, str(repository)]
    if not begins:
        return _headed(f"{service}-result", _output(command, environment, body))
    if service == _PUSH:
        return _headed(f"{service}-advertisement", _PUSH_BEGINS + _output(command, environment, body))
    if settings not in _capabilities:
        _capabilities[settings] = _output(command, environment, body)
    return _headed(f"{service}-advertisement", _capabilities[settings])


_PUSH = "git-receive-pack"
_PUSH_BEGINS = b"001f# service=git-receive-pack\n0000"
_PROTOCOLS = {"git-upload-pack": "version=2", _PUSH: ""}
"""The version of the protocol in which Git itself fetches and pushes."""
_capabilities: dict[bytes, bytes] = {}
"""The answers of Git at the beginning of a fetch, which depend on the configuration of the repository alone."""


def _headed(kind: str, answer: bytes) -> bytes:
    return f"Content-Type: application/x-{kind}\r\n\r\n".encode() + answer


def _output(command: Sequence[str], environment: Mapping[str, str], body: bytes) -> bytes:
    return subprocess.run(command, input=body, env=environment, capture_output=True, check=False).stdout


def no_trouble(exchange: Exchange, path: str) -> bool:
    """Let Git answer."""
    return False


class SmartServer(http.server.ThreadingHTTPServer):
    """Serves the bare repositories in a directory over HTTPS, without a certificate over HTTP."""

    daemon_threads = False

    def __init__(self, root: Path, certificate: Path | None) -> None:
        super().__init__(("127.0.0.1", 0), Exchange)
        self.root = root
        self.requests: list[str] = []
        self.authorisations: list[str | None] = []
        self.connections: list[socket.socket] = []
        self.trouble: Callable[[Exchange, str], bool] = no_trouble
        self.scheme = "https" if certificate else "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that hangs up, which is part of the tests."""


@contextmanager
def serving(root: Path, certificate: Path | None) -> Iterator[SmartServer]:
    """Run a server while the block does."""
    server = SmartServer(root, certificate)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        for connection in server.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        server.server_close()


def settings_of_a_caller(directory: Path) -> dict[str, str]:
    """Return the environment of a person whose `git` knows the password by a helper of its own."""
    helper = program(directory, "credential-helper", f"echo username={USER}; echo password={PASSWORD}")
    keep_secret_in(helper)
    return {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "credential.helper", "GIT_CONFIG_VALUE_0": str(helper)}


def self_signed(directory: Path, *hosts: str) -> Path:
    """Make a certificate for 127.0.0.1 and `hosts` with its key, in one file; it is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kardinal test")])
    now = datetime.now(UTC)
    addresses = [x509.IPAddress(IPv4Address("127.0.0.1")), *map(x509.DNSName, hosts)]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = directory / "server.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a certificate that every transfer of the run trusts, and no other one.

    Without the directory each transfer would read the hundreds of certificates of the machine: two thirds of its time.
    """
    certificate = self_signed(tmp_path_factory.mktemp("certificate"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(certificate))
        patch.setenv("SSL_CERT_DIR", str(tmp_path_factory.mktemp("no-certificates")))
        yield certificate


def killed_with_its_client(exchange: Exchange, path: str) -> bool:
    """Answer a push as Gitea does: Git is killed, with its hooks, when the client hangs up."""
    if exchange.command != "POST" or not path.endswith("receive-pack"):
        return False
    with exchange.git() as git:
        while git.poll() is None:
            # After its request a client says nothing: what can be read is the end of the connection.
            if select.select([exchange.connection], [], [], 0.01)[0]:
                os.killpg(git.pid, signal.SIGKILL)
                exchange.close_connection = True
                return True
        assert git.stdout is not None
        exchange.send(git.stdout.read())
    return True
