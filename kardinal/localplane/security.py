"""Who may talk to the plane, and how it proves who it is (local-plane.md 2.2 item 2, 5.1).

kubectl drops bearer tokens on plain HTTP, so there is TLS as soon as there is authentication. The plane is its own
certificate authority with P-256 keys (an RSA key costs 75 ms); clients trust it through the CA in their kubeconfig.

Each identity has a random token of its own, so that the request log can tell who wrote what and the controllers share
no secret. Everything here that touches files belongs in a thread; every file is readable by its owner only, and
nobody's `~/.kube/config` is ever touched.

Certificates live in real time, never in a test's virtual time: the TLS library of the other side compares them with
the clock of the machine.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import os
import secrets
import ssl
import tempfile
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import orjson
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kardinal.runtime.clock import SystemClock

__all__ = ["IDENTITIES", "Authority", "Tokens", "User", "private_directory", "write_kubeconfig", "write_private"]

CA_LIFETIME = timedelta(days=3650)
SERVER_LIFETIME = timedelta(days=825)
IDENTITIES = ("admin", "controller", "agent", "simulator")


@dataclass(frozen=True, slots=True)
class User:
    """Who a request comes from."""

    name: str
    groups: tuple[str, ...]


def private_directory(path: Path) -> None:
    """Make `path` a directory of its owner alone."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.chmod(0o700)


def write_private(path: Path, content: bytes) -> None:
    """Replace `path` as a whole; it is never readable by others, not even for a moment."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


class Authority:
    """A certificate authority and the server certificate it issued for loopback addresses."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self._key = key
        self._certificate = certificate
        self._context: ssl.SSLContext | None = None

    @classmethod
    def create(cls) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kardinal local plane")])
        now = SystemClock().now()
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + CA_LIFETIME)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(key, certificate)

    @classmethod
    def load_or_create(cls, directory: Path) -> Authority:
        """The authority kept in `directory`, made at the first call."""
        path = directory / "ca.pem"
        if path.exists():
            content = path.read_bytes()
            key = serialization.load_pem_private_key(content, password=None)
            if not isinstance(key, ec.EllipticCurvePrivateKey):
                raise TypeError(f"{path} holds a key of another kind")
            return cls(key, x509.load_pem_x509_certificate(content))
        authority = cls.create()
        write_private(path, _pem(authority._key) + authority.certificate)
        return authority

    @property
    def certificate(self) -> bytes:
        """The CA certificate, PEM."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def server_context(self, directory: Path) -> ssl.SSLContext:
        """The TLS context of the server; made once, because issuing and loading costs more than starting a plane."""
        if self._context is None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.set_alpn_protocols(["http/1.1"])
            path = directory / "server.pem"
            write_private(path, self._issue())
            context.load_cert_chain(path)
            path.unlink()
            self._context = context
        return self._context

    def _issue(self) -> bytes:
        key = ec.generate_private_key(ec.SECP256R1())
        now = SystemClock().now()
        names = x509.SubjectAlternativeName(
            [
                x509.DNSName("localhost"),
                x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
                x509.IPAddress(ipaddress.ip_address("::1")),
            ]
        )
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]))
            .issuer_name(self._certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(min(now + SERVER_LIFETIME, self._certificate.not_valid_after_utc))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(names, critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._certificate.public_key()),  # type: ignore[arg-type]
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )
        return _pem(key) + certificate.public_bytes(serialization.Encoding.PEM)


class Tokens:
    """The bearer tokens of the identities, kept across restarts so that a kubeconfig stays good."""

    def __init__(self, tokens: dict[str, str]) -> None:
        self._tokens = tokens
        # Looked up by digest, so that the time of a lookup says nothing about the token.
        self._users = {_digest(token): _user(name) for name, token in tokens.items()}

    @classmethod
    def load_or_create(cls, directory: Path) -> Tokens:
        path = directory / "tokens.json"
        tokens: dict[str, str] = orjson.loads(path.read_bytes()) if path.exists() else {}
        missing = [name for name in IDENTITIES if name not in tokens]
        if missing:
            tokens.update({name: secrets.token_urlsafe(32) for name in missing})
            write_private(path, orjson.dumps(tokens))
        return cls(tokens)

    def of(self, identity: str) -> str:
        return self._tokens[identity]

    def authenticate(self, token: str) -> User | None:
        return self._users.get(_digest(token))


def write_kubeconfig(path: Path, *, server: str, authority: Authority, identity: str, token: str) -> None:
    """A kubeconfig with one cluster, one user and one context, in a file of its own."""
    authority_data = base64.b64encode(authority.certificate).decode()
    content = f"""\
apiVersion: v1
kind: Config
current-context: kardinal-local
clusters:
- name: kardinal-local
  cluster:
    server: {server}
    certificate-authority-data: {authority_data}
users:
- name: {identity}
  user:
    token: {token}
contexts:
- name: kardinal-local
  context:
    cluster: kardinal-local
    user: {identity}
    namespace: default
"""
    write_private(path, content.encode())


def _user(identity: str) -> User:
    groups = ("system:masters",) if identity == "admin" else ("kardinal:components",)
    name = identity if identity == "admin" else f"kardinal:{identity}"
    return User(name, (*groups, "system:authenticated"))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
