"""Asking a registry which digest a tag has: by the specification, with and without a login, over TLS."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from kardinal_controller.registries.challenge import Challenge, read_challenge, token_url
from kardinal_controller.registries.errors import RegistryError
from kardinal_controller.registries.pull_secrets import read_logins
from tests.attacks.test_custom_steps import ScriptedNames
from tests.registries.asking import HERE, asking, image, pull_secret
from tests.support.distribution import LOGIN, Distribution, Serving
from tests.support.image_registry import serving_registry
from tests.support.smart_server import self_signed


@pytest.mark.parametrize("tells_digests", [True, False], ids=["says the digest", "gives the manifest alone"])
async def test_the_digest_of_a_tag_is_that_of_its_manifest(tells_digests: bool) -> None:
    async with serving_registry(tells_digests=tells_digests) as registry:
        digest = registry.push("acme/my-app", "1.1.0", b'{"schemaVersion": 2}')
        assert await asking(HERE).digest(image(registry.host)) == digest
    asked = registry.heard[0]
    assert (asked.method, asked.path) == ("HEAD", "/v2/acme/my-app/manifests/1.1.0")
    assert "application/vnd.oci.image.index.v1+json" in asked.headers["accept"]


async def test_the_digest_of_a_tag_is_the_one_that_it_has_now(serving: Serving) -> None:
    async with serving() as registry:
        first, second = (registry.push("acme/my-app", "1.1.0", text) for text in (b"{}", b'{"other": true}'))
        assert first != second
        assert await asking(HERE).digest(image(registry.host)) == second


async def test_a_tag_that_is_not_there_is_said(serving: Serving) -> None:
    async with serving() as registry:
        with pytest.raises(RegistryError, match=r"has no .*my-app:1\.1\.0: push it"):
            await asking(HERE).digest(image(registry.host))


async def test_a_login_by_token_is_sent_once_the_registry_asks_for_it() -> None:
    async with serving_registry(login=LOGIN, tokens=True) as registry:
        digest = registry.push("acme/my-app", "1.1.0", b"{}")
        logins = read_logins(pull_secret({registry.host: LOGIN}, hosts=registry.host))
        assert await asking(HERE).digest(image(registry.host), logins) == digest
    assert "authorization" not in registry.heard[0].headers


async def test_a_login_by_basic_is_sent_once_the_registry_asks_for_it(serving: Serving) -> None:
    async with serving(login=LOGIN) as registry:
        digest = registry.push("acme/my-app", "1.1.0", b"{}")
        logins = read_logins(pull_secret({registry.host: LOGIN}, hosts=registry.host))
        assert await asking(HERE).digest(image(registry.host), logins) == digest
        assert len(registry.heard) == 2
        wrong = read_logins(pull_secret({registry.host: "robot:another"}, hosts=registry.host))
        for shown in (None, wrong):
            with pytest.raises(RegistryError, match=r"spec\.pullSecretRef"):
                await asking(HERE).digest(image(registry.host), shown)


async def test_a_real_registry_is_asked_over_tls_with_a_login(
    distribution: Callable[..., AbstractAsyncContextManager[Distribution]], tmp_path: Path
) -> None:
    certificate = self_signed(tmp_path, "registry.example.com")
    trusted = ssl.create_default_context(cafile=str(certificate))
    names = ScriptedNames(["127.0.0.1"])
    async with distribution(login=LOGIN, certificate=certificate) as registry:
        digest = registry.push("acme/my-app", "1.1.0", b"{}")
        host = f"registry.example.com:{registry.port}"
        logins = read_logins(pull_secret({host: LOGIN}, hosts=host))
        asked = asking(host, resolver=lambda: names, tls=trusted)
        assert await asked.digest(image(host), logins) == digest
        with pytest.raises(RegistryError, match="certificate that is not trusted"):
            await asking(host, resolver=lambda: names).digest(image(host), logins)


async def test_a_public_image_gets_a_token_without_a_login_that_reads_it_alone() -> None:
    async with serving_registry(tokens=True) as registry:
        digest = registry.push("acme/my-app", "1.1.0", b"{}")
        assert await asking(HERE).digest(image(registry.host)) == digest
    token = next(each for each in registry.heard if each.path.startswith("/token"))
    assert token.path == "/token?service=registry.example.com&scope=repository:acme/my-app:pull"
    assert "authorization" not in token.headers


@pytest.mark.parametrize(
    ("header", "challenge"),
    [
        ('Bearer realm="https://a/t",service="r"', Challenge("bearer", {"realm": "https://a/t", "service": "r"})),
        ('bearer  realm = "https://a/t" , scope="a:b"', Challenge("bearer", {"realm": "https://a/t", "scope": "a:b"})),
        ('Basic realm="a \\"b\\""', Challenge("basic", {"realm": 'a "b"'})),
        ("Bearer realm=https://a/t", Challenge("bearer", {"realm": "https://a/t"})),
        ("Negotiate", Challenge("negotiate")),
        ("", Challenge("")),
        ('=,"', Challenge("")),
    ],
)
def test_challenges_are_read(header: str, challenge: Challenge) -> None:
    assert read_challenge(header) == challenge


@pytest.mark.parametrize(
    ("realm", "url"),
    [
        ("https://auth.example.com/token", "https://auth.example.com/token?scope=repository%3Aa%2Fb%3Apull"),
        ("https://a.example.com/t?x=1", "https://a.example.com/t?x=1&scope=repository%3Aa%2Fb%3Apull"),
    ],
)
def test_the_token_service_is_asked_for_reading_alone(realm: str, url: str) -> None:
    assert token_url(Challenge("bearer", {"realm": realm}), registry="r", path="a/b") == url
