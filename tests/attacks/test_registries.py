"""Attacks through registries: on what only the controller can reach, on its Secrets, and on its memory."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
from aiohttp import web

from kardinal.objects.secret_purposes import CREDENTIALS_GIT, CREDENTIALS_REGISTRY
from kardinal_controller.registries.challenge import Challenge, token_url
from kardinal_controller.registries.errors import RegistryError
from kardinal_controller.registries.pull_secrets import read_logins
from tests.attacks.test_custom_steps import ScriptedNames
from tests.registries.asking import HERE, asking, image, pull_secret
from tests.support.endpoint import answering, serving_endpoint
from tests.support.image_registry import serving_registry
from tests.support.secret_values import secret_value
from tests.support.smart_server import self_signed

LOGIN = f"robot:{secret_value('registry')}"


@pytest.mark.parametrize("patterns", [(), ("ghcr.io",), ("127.0.0.1:1",)])
async def test_a_registry_that_is_not_listed_is_not_asked(patterns: tuple[str, ...]) -> None:
    async with serving_registry() as registry:
        with pytest.raises(RegistryError, match=f"--allow-registries {registry.host}"):
            await asking(*patterns).digest(image(registry.host))
    assert registry.heard == []


async def test_a_redirect_to_another_host_is_not_followed() -> None:
    async with serving_endpoint() as metadata:
        moved = answering(307, {}, Location=f"http://{metadata.host}/latest/meta-data")
        async with serving_registry(answer=moved) as registry:
            with pytest.raises(RegistryError, match="redirects are not followed"):
                await asking(HERE).digest(image(registry.host))
    assert metadata.heard == []


async def test_a_token_service_that_is_not_listed_is_not_asked() -> None:
    async with serving_endpoint() as inside, serving_registry(tokens=True) as registry:
        registry.realm = f"http://{inside.host}/token"
        with pytest.raises(RegistryError, match=f"token service {inside.host}, which is not asked"):
            await asking(registry.host).digest(image(registry.host))
    assert inside.heard == []


async def test_a_login_goes_to_no_token_service_that_its_secret_does_not_name() -> None:
    async with serving_endpoint() as thief, serving_registry(login=LOGIN, tokens=True) as registry:
        registry.realm = f"http://{thief.host}/token"
        logins = read_logins(pull_secret({registry.host: LOGIN}, hosts=registry.host))
        with pytest.raises(RegistryError, match=f"not marked as a credential of registries for {thief.host}"):
            await asking(HERE).digest(image(registry.host), logins)
    assert thief.heard == []


@pytest.mark.parametrize(
    ("hosts", "label"),
    [
        ("other.example.com", CREDENTIALS_REGISTRY),
        ("", CREDENTIALS_REGISTRY),
        (None, CREDENTIALS_GIT),
    ],
    ids=["another host", "no host", "a Secret for Git"],
)
async def test_a_secret_goes_only_where_it_says(hosts: str | None, label: str) -> None:
    async with serving_registry(login=LOGIN) as registry:
        secret = pull_secret({registry.host: LOGIN}, hosts=registry.host if hosts is None else hosts, label=label)
        with pytest.raises(RegistryError, match="kubectl -n") as caught:
            await asking(HERE).digest(image(registry.host), read_logins(secret))
    assert LOGIN not in str(caught.value)
    assert all("authorization" not in each.headers for each in registry.heard)


@pytest.mark.parametrize(
    "realm",
    [
        "",
        "token",
        "file:///etc/passwd",
        "https://me@auth.example.com/token",
        "https://auth.example.com/token#x",
        "https://auth.example.com\r\nX: 1/",
        "https://[::1/",
        "https://auth.example.com:99999/",
    ],
)
def test_a_realm_that_is_no_service_is_refused(realm: str) -> None:
    with pytest.raises(RegistryError, match="names no token service"):
        token_url(Challenge("bearer", {"realm": realm}), registry="r", path="a/b")


@pytest.mark.parametrize(
    "digest",
    ["", "sha256:", "sha256:abc", f"sha256:{'A' * 64}", f"md5:{'0' * 32}", f"sha256:{'0' * 64}\tx", "<script>"],
)
async def test_a_digest_that_is_none_is_refused(digest: str) -> None:
    async with serving_registry(answer=answering(200, "", Docker_Content_Digest=digest)) as registry:
        with pytest.raises(RegistryError, match="a digest that is none") as caught:
            await asking(HERE).digest(image(registry.host))
    assert "script" not in str(caught.value)


async def test_an_endless_manifest_is_cut_off() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        try:
            while request.method == "GET":
                await answer.write(b"x" * 65536)
        except (ConnectionError, asyncio.CancelledError):
            pass
        return answer

    async with serving_registry(answer=endless) as registry:
        with pytest.raises(RegistryError, match="more than"):
            await asking(HERE).digest(image(registry.host))


@pytest.mark.parametrize("address", ["169.254.169.254", "10.0.0.1", "127.0.0.1"])
async def test_a_listed_name_with_a_pattern_does_not_lead_inside_by_accident(address: str) -> None:
    found = ScriptedNames([address])
    near = address.startswith("169")
    registry = asking("registry.example.com" if not near else "*.example.com", resolver=lambda: found, request_time=0.2)
    with pytest.raises(RegistryError) as caught:
        await registry.digest(image("registry.example.com"))
    # A host that is listed may be inside; where a link or a metadata service is, only one listed without *.
    assert ("--allow-registries with its name, without" in str(caught.value)) == near


async def test_the_certificate_of_a_registry_is_looked_at(tmp_path: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(self_signed(tmp_path))
    names_ = ScriptedNames(["127.0.0.1"])
    async with serving_registry(tls=tls) as registry:
        registry.push("acme/my-app", "1.1.0", b"{}")
        host = f"registry.example.com:{registry.port}"
        with pytest.raises(RegistryError, match="certificate that is not trusted"):
            await asking(host, resolver=lambda: names_).digest(image(host))
    assert registry.heard == []
