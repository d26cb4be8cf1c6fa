"""The names that a proxy sends are believed from the proxy alone."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kardinal_controller.ui.access import ProxyAccess, Reviews, require_client_certificate
from tests.support.identities import RESOURCES, documents_of
from tests.support.names import TEAM
from tests.support.world import World
from tests.ui.viewers import Page, answer_of, bind, reception_of, serve

VIEWER = "/api/ui/v1/viewer"
DANA = {"X-Forwarded-User": "dana", "X-Forwarded-Groups": "shop,qa"}


@dataclass(frozen=True)
class Authority:
    """A certificate authority in files of `directory`."""

    directory: Path
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def make(cls, directory: Path, name: str) -> Authority:
        directory.mkdir()
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        built = (
            _builder(subject, subject, key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        (directory / "ca.crt").write_bytes(built.public_bytes(serialization.Encoding.PEM))
        return cls(directory, key, built)

    @property
    def file(self) -> Path:
        return self.directory / "ca.crt"

    def issue(self, name: str) -> Path:
        """Return a file with a certificate for loopback and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        hosts = [x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("localhost")]
        built = (
            _builder(subject, self.certificate.subject, key)
            .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
                critical=False,
            )
            .sign(self.key, hashes.SHA256())
        )
        path = self.directory / f"{name}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path.write_bytes(private + built.public_bytes(serialization.Encoding.PEM))
        return path


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
    )


@pytest.fixture
def proxies(tmp_path: Path) -> Authority:
    return Authority.make(tmp_path / "proxies", "proxies")


def server_context(proxies: Authority) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(proxies.issue("server"))
    return context


@pytest.fixture
async def page(world: World, proxies: Authority) -> AsyncIterator[Page]:
    for role in documents_of("roles.yaml"):
        await world.client.apply(RESOURCES[role["kind"]], role, field_manager="test", force=True)
    tls = server_context(proxies)
    require_client_certificate(tls, proxies.file)
    async with serve(await access_of(world), tls=tls) as page:
        yield page


async def access_of(world: World) -> ProxyAccess:
    reviews = Reviews(await world.connect("controller"), clock=world.clock)
    return ProxyAccess(reception=reception_of(world, reviews))


def client_context(proxies: Authority, certificate: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=proxies.file)
    if certificate is not None:
        context.load_cert_chain(certificate)
    return context


async def ask(page: Page, tls: ssl.SSLContext, headers: Any = None, path: str = VIEWER) -> tuple[int, Any]:
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as session,
        session.get(page.url + path, headers=headers) as answer,
    ):
        return await answer_of(answer)


async def test_a_viewer_is_who_the_proxy_names_with_their_rights(world: World, page: Page, proxies: Authority) -> None:
    await bind(world, "dana", "kardinal-viewer", namespace=TEAM)
    tls = client_context(proxies, proxies.issue("proxy"))
    status, viewer = await ask(page, tls, DANA)
    assert status == 200
    assert (viewer["user"], viewer["namespaces"]) == ("dana", [TEAM])
    assert viewer["groups"] == ["shop", "qa", "system:authenticated"]
    assert (viewer["mayAct"], viewer["readsAsViewer"]) == (False, False)
    assert await ask(page, tls, DANA, f"/read/{TEAM}") == (200, "no client")
    assert (await ask(page, tls, {"X-Forwarded-User": "erin"}))[1]["namespaces"] == []


async def test_a_connection_without_a_certificate_of_the_authority_is_refused(
    page: Page, proxies: Authority, tmp_path: Path
) -> None:
    other = Authority.make(tmp_path / "others", "others")
    for certificate in (None, other.issue("proxy")):
        with pytest.raises((aiohttp.ClientError, OSError)):
            await ask(page, client_context(proxies, certificate), DANA)


async def test_headers_are_not_believed_where_no_certificate_is_asked_for(world: World, proxies: Authority) -> None:
    access = await access_of(world)
    tls = client_context(proxies, proxies.issue("proxy"))
    async with serve(access, tls=server_context(proxies)) as page:
        status, answer = await ask(page, tls, DANA)
        assert (status, answer["auth"]) == (401, "proxy")
    optional = server_context(proxies)
    optional.verify_mode = ssl.CERT_OPTIONAL
    async with serve(access, tls=optional) as page:
        assert (await ask(page, client_context(proxies, None), DANA))[0] == 401
    async with (
        serve(access) as page,
        aiohttp.ClientSession() as session,
        session.get(page.url + VIEWER, headers=DANA) as plain,
    ):
        assert plain.status == 401


async def test_names_that_no_proxy_should_send_are_refused(page: Page, proxies: Authority) -> None:
    tls = client_context(proxies, proxies.issue("proxy"))
    for headers in (
        [],
        [("X-Forwarded-User", "")],
        [("X-Forwarded-User", "dana"), ("X-Forwarded-User", "admin")],
        [("X-Forwarded-User", "system:admin")],
        [("X-Forwarded-User", "dana"), ("X-Forwarded-Groups", "qa, system:masters")],
        [("X-Forwarded-User", "d" * 513)],
        [("X-Forwarded-User", "dana"), ("X-Forwarded-Groups", ",".join(f"g{number}" for number in range(1_001)))],
    ):
        status, answer = await ask(page, tls, headers)
        assert (status, answer["auth"]) == (401, "proxy"), headers
    with pytest.raises(ValueError, match="Expecting value"):
        # Refused before any handler runs, and so without a document.
        await ask(page, tls, [("X-Forwarded-User", "dana"), ("X-Forwarded-Groups", "g" * 60_000)])


async def test_a_page_of_another_origin_is_refused_behind_a_proxy(page: Page, proxies: Authority) -> None:
    tls = client_context(proxies, proxies.issue("proxy"))
    assert (await ask(page, tls, {**DANA, "Sec-Fetch-Site": "cross-site"}))[0] == 403
    # A proxy may send another Host than the browser did; the browser's own word holds.
    assert (await ask(page, tls, {**DANA, "Sec-Fetch-Site": "same-origin", "Origin": "https://page.example.com"}))[
        0
    ] == 200


@pytest.mark.virtual_time("rights are asked for once a minute")
async def test_a_right_that_was_taken_ends_the_stream(world: World, page: Page, proxies: Authority) -> None:
    await bind(world, "dana", "kardinal-viewer", namespace=TEAM)
    tls = client_context(proxies, proxies.issue("proxy"))
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as session,
        session.get(page.url + "/stream", headers=DANA) as stream,
    ):
        await stream.content.readline()
        page.looks.put_nowait(None)
        assert await stream.content.readline() == b"goes on\n"
        await world.client.delete(RESOURCES["RoleBinding"], "dana-kardinal-viewer", TEAM)
        await world.live(timedelta(seconds=60))
        page.looks.put_nowait(None)
        assert b"have changed" in await stream.content.readline()
