"""Commits of ours, as Git itself judges them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from kardinal.git import Repository
from kardinal.git.signing import SshSigner, UnusableKey
from kardinal.tree.commit_message import CommitMessage
from tests.git.conftest import Git, message, setting

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="git verifies signatures with ssh-keygen")

_Key = ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
_KEYS: dict[str, _Key] = {
    "ed25519": ed25519.Ed25519PrivateKey.generate(),
    "rsa": rsa.generate_private_key(65537, 2048),
    "p256": ec.generate_private_key(ec.SECP256R1()),
    "p384": ec.generate_private_key(ec.SECP384R1()),
    "p521": ec.generate_private_key(ec.SECP521R1()),
}


def text_of(key: _Key | dsa.DSAPrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()


def allow(bare: Git, key: _Key, tmp_path: Path) -> None:
    """Have Git believe what the key signed for `robot@example.org`."""
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    (tmp_path / "allowed").write_text(f"robot@example.org {public}\n")
    bare("config", "gpg.ssh.allowedSignersFile", str(tmp_path / "allowed"))


@pytest.mark.parametrize("kind", _KEYS)
async def test_git_finds_the_signature_good(repository: Repository, bare: Git, tmp_path: Path, kind: str) -> None:
    key = _KEYS[kind]
    allow(bare, key, tmp_path)
    # Numbers of ECDSA differ in length from signature to signature.
    for number in range(4):
        signer = SshSigner(text_of(key))
        edit = setting("dev", b"v%d\n" % number)
        await repository.land("main", edit, message("dev", f"app-{number}"), signer=signer)
    assert bare("log", "--format=%G? %GS", "main").splitlines() == ["G robot@example.org"] * 4 + ["N"]
    bare("verify-commit", "main")
    bare("fsck", "--strict")
    assert await repository.find("main", {"Kardinal-Bundle": "app-0"}) is not None


async def test_a_proposal_is_signed_and_stays_so_where_it_is_merged_forward(
    repository: Repository, bare: Git, tmp_path: Path
) -> None:
    key = _KEYS["ed25519"]
    allow(bare, key, tmp_path)
    signer = SshSigner(text_of(key))
    proposed = await repository.propose(
        "kardinal/app-1/dev", base="main", edit=setting("dev", b"v2\n"), message=message("dev"), signer=signer
    )
    await repository.merge("main", proposed.commit)
    bare("verify-commit", "main")


async def test_a_changed_commit_is_no_longer_good(repository: Repository, bare: Git, tmp_path: Path) -> None:
    key = _KEYS["ed25519"]
    allow(bare, key, tmp_path)
    await repository.land("main", setting("dev", b"v2\n"), message("dev"), signer=SshSigner(text_of(key)))
    content = bare("cat-file", "commit", "main").replace("why", "another reason")
    forged = bare("hash-object", "-w", "-t", "commit", "--stdin", input=content + "\n")
    assert bare("log", "-1", "--format=%G?", forged) == "B"


async def test_author_and_committer_stand_in_the_commit(repository: Repository, bare: Git) -> None:
    made = CommitMessage(
        "words", author="Dana Lee <dana@example.org>", committer="Robot <robot@example.org>", trailers={"A": "b"}
    )
    await repository.land("main", setting("dev", b"v2\n"), made)
    assert bare("log", "-1", "--format=%an <%ae>, %cn <%ce>") == (
        "Dana Lee <dana@example.org>, Robot <robot@example.org>"
    )


@pytest.mark.parametrize("person", ["x", "x <y> 1 +0000\ncommitter z <z>", "<y@z>", "a <b c>"])
def test_a_person_is_one_line_of_a_commit(person: str) -> None:
    with pytest.raises(ValueError, match="Name <address>"):
        CommitMessage("words", author=person)


def test_a_key_of_another_kind_is_refused() -> None:
    with pytest.raises(UnusableKey, match="ed25519, RSA and ECDSA"):
        SshSigner(_pem(dsa.generate_private_key(2048)))


def test_a_signer_does_not_show_its_key() -> None:
    text = text_of(_KEYS["ed25519"])
    assert text.splitlines()[2] not in repr(SshSigner(text))


def _pem(key: dsa.DSAPrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
