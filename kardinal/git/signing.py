"""Sign commits with an SSH key, in the same way as `ssh-keygen -Y sign -n git`.

The format is that of OpenSSH's PROTOCOL.sshsig. Commits are signed in this process, so the key gets neither into a file
nor to another program.
"""

from __future__ import annotations

import base64
import hashlib
import struct
import textwrap

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_ssh_private_key,
)

__all__ = ["SshSigner", "UnusableKey"]

_MAGIC = b"SSHSIG"
_VERSION = 1
_NAMESPACE = b"git"
_CURVES: dict[str, tuple[bytes, hashes.HashAlgorithm]] = {
    "secp256r1": (b"ecdsa-sha2-nistp256", hashes.SHA256()),
    "secp384r1": (b"ecdsa-sha2-nistp384", hashes.SHA384()),
    "secp521r1": (b"ecdsa-sha2-nistp521", hashes.SHA512()),
}
_Key = ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


class UnusableKey(ValueError):
    """A key of a kind that cannot sign commits."""


class SshSigner:
    """Sign with one private key, given as the text of its file."""

    def __init__(self, private_key: str) -> None:
        load = load_ssh_private_key if "OPENSSH" in private_key.partition("\n")[0] else load_pem_private_key
        key = load(private_key.encode(), password=None)
        if not isinstance(key, _Key) or (isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name not in _CURVES):
            raise UnusableKey("commits are signed with keys of ed25519, RSA and ECDSA")
        self._key: _Key = key
        line = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        self._public = base64.b64decode(line.split()[1])

    def __repr__(self) -> str:
        return "SshSigner(***)"

    def sign(self, content: bytes) -> str:
        """Return the signature of `content`, in the lines that Git stores."""
        digest = _string(hashlib.sha512(content).digest())
        signed = _MAGIC + _string(_NAMESPACE) + _string(b"") + _string(b"sha512") + digest
        blob = (
            _MAGIC
            + struct.pack(">I", _VERSION)
            + _string(self._public)
            + _string(_NAMESPACE)
            + _string(b"")
            + _string(b"sha512")
            + _string(self._signature(signed))
        )
        lines = "\n".join(textwrap.wrap(base64.b64encode(blob).decode(), 70))
        return f"-----BEGIN SSH SIGNATURE-----\n{lines}\n-----END SSH SIGNATURE-----"

    def _signature(self, content: bytes) -> bytes:
        key = self._key
        if isinstance(key, ed25519.Ed25519PrivateKey):
            return _string(b"ssh-ed25519") + _string(key.sign(content))
        if isinstance(key, rsa.RSAPrivateKey):
            return _string(b"rsa-sha2-512") + _string(key.sign(content, padding.PKCS1v15(), hashes.SHA512()))
        name, algorithm = _CURVES[key.curve.name]
        numbers = decode_dss_signature(key.sign(content, ec.ECDSA(algorithm)))
        return _string(name) + _string(b"".join(map(_number, numbers)))


def _string(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content


def _number(value: int) -> bytes:
    """Return a positive number in the SSH protocol, in which the first bit is the sign."""
    return _string(value.to_bytes(value.bit_length() // 8 + 1, "big"))
