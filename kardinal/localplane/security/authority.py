"""The plane's own certificate authority (local-plane.md 2.2 item 2, 5.1).

kubectl drops bearer tokens on plain HTTP, so there is TLS as soon as there is authentication. The authority has P-256
keys (an RSA key costs 75 ms); clients trust it through the CA in their kubeconfig. What touches files belongs in a
thread.

Certificates live in real time, never in a test's virtual time: the TLS library of the other side compares them with
the clock of the machine.
"""

from __future__ import annotations

import ipaddress
import ssl
from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kardinal.localplane.security.private import write_private
from kardinal.runtime.clock import SystemClock

__all__ = ["Authority"]

CA_LIFETIME = timedelta(days=3650)
SERVER_LIFETIME = timedelta(days=825)


class Authority:
    """A certificate authority and the server certificate it issued for loopback addresses.

    `certificate` is its own, as PEM.
    """

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self._key = key
        self._certificate = certificate
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM)
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
