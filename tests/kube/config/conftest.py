"""Kubeconfig files, certificates and pods to load credentials from."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

SECRET = "hunter2"
SERVER_NAME = "api.example.com"


@pytest.fixture(autouse=True)
def _no_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


@dataclass(frozen=True)
class Identity:
    """A certificate that is its own authority, for the server SERVER_NAME and for the client `test`."""

    certificate: str
    key: str

    def write(self, directory: Path) -> tuple[Path, Path]:
        directory.mkdir(parents=True, exist_ok=True)
        certificate = directory / "tls.crt"
        key = directory / "tls.key"
        certificate.write_text(self.certificate)
        key.write_text(self.key)
        return certificate, key

    def server_context(self, directory: Path) -> ssl.SSLContext:
        """TLS of a server that takes this client alone."""
        certificate, key = self.write(directory)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=certificate)
        context.load_cert_chain(certificate, key)
        context.verify_mode = ssl.CERT_REQUIRED
        return context


@pytest.fixture(scope="session")
def authority() -> Identity:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=3650))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(SERVER_NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Identity(pem.decode(), private.decode())


def config(*, cluster: Any = None, **user: Any) -> dict[str, Any]:
    """Return a kubeconfig of one cluster and one user, in the context `here`."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": cluster or {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}},
            {"name": "there", "context": {"cluster": "c", "user": "u"}},
        ],
    }


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a document to a file of the test's directory."""

    def written(content: object, name: str = "config") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return path

    return written


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, authority: Identity) -> Path:
    """Return the directory that a kubelet mounts, in an environment as that of a pod."""
    directory = tmp_path / "serviceaccount"
    directory.mkdir()
    for name, content in {"token": "token-1\n", "ca.crt": authority.certificate, "namespace": "team\n"}.items():
        (directory / name).write_text(content)
    monkeypatch.setattr("kardinal.kube.in_cluster.SERVICE_ACCOUNT", directory)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return directory
