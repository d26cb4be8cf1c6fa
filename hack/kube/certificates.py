"""Certificates and keys of a control plane under test: one authority, a server, an administrator."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ["ADMINISTRATORS", "write_certificates"]

ADMINISTRATORS = "system:masters"
_LIFE = timedelta(days=2)


def write_certificates(directory: Path) -> None:
    """Write ca.crt, server.{crt,key}, admin.{crt,key} and accounts.key, which signs ServiceAccount tokens."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("kardinal-test-authority")
    authority = _builder(authority_name, issuer=authority_name, key=authority_key)
    authority = authority.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    (directory / "ca.crt").write_bytes(_pem(authority.sign(authority_key, hashes.SHA256())))

    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))])
    for stem, subject, usage, extension in (
        ("server", _name("kube-apiserver"), ExtendedKeyUsageOID.SERVER_AUTH, names),
        ("admin", _name("admin", organization=ADMINISTRATORS), ExtendedKeyUsageOID.CLIENT_AUTH, None),
    ):
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, issuer=authority_name, key=key)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if extension is not None:
            builder = builder.add_extension(extension, critical=False)
        (directory / f"{stem}.crt").write_bytes(_pem(builder.sign(authority_key, hashes.SHA256())))
        _write_key(directory / f"{stem}.key", key)
    _write_key(directory / "accounts.key", ec.generate_private_key(ec.SECP256R1()))


def _builder(subject: x509.Name, *, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _LIFE)
    )


def _name(common: str, *, organization: str | None = None) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if organization is not None:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(parts)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        # The API server takes the public half of a key file in this format, and not in PKCS #8.
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
