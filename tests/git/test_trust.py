"""Which host gets credentials, and what it has to prove first: authorities, redirects, proxies, renewed tokens."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from kardinal.git import (
    AuthenticationFailed,
    GitCredentials,
    GitRunner,
    Repositories,
    Repository,
    RepositoryUnreachable,
)
from tests.git.conftest import Git, message, setting
from tests.git.test_remote import mirrors
from tests.support.clock import VirtualClock
from tests.support.smart_server import PASSWORD, USER, Exchange, SmartServer, self_signed, serving


async def test_the_authority_of_the_credentials_is_trusted_and_no_other(
    repositories: Repositories, server: SmartServer, bare: Git, tmp_path: Path
) -> None:
    stranger = self_signed(tmp_path)
    with serving(bare.directory.parent, stranger) as other:
        theirs = GitCredentials(USER, PASSWORD, authority=stranger.read_text().partition("-----BEGIN CERT")[2])
        theirs = dataclasses.replace(theirs, authority=f"-----BEGIN CERT{theirs.authority}")
        await repositories.open(f"{other.url}/gitops.git", theirs).land("main", setting("dev", b"v2\n"), message("dev"))
        assert bare("show", "main:environments/dev/kustomization.yaml") == "v2"
    # The machine trusts this one.
    with pytest.raises(RepositoryUnreachable, match="certificate"):
        await repositories.open(f"{server.url}/gitops.git", theirs).head("main")


async def test_a_repository_on_this_machine_is_reached_without_tls(
    repositories: Repositories, bare: Git, server: SmartServer
) -> None:
    with serving(bare.directory.parent, None) as plain:
        remote = repositories.open(f"{plain.url}/gitops.git", GitCredentials(USER, PASSWORD))
        landed = await remote.land("main", setting("dev", b"v2\n"), message("dev"))
    assert bare("rev-parse", "main") == landed.commit


async def test_a_redirect_to_another_scheme_is_not_followed(
    repositories: Repositories, server: SmartServer, bare: Git
) -> None:
    remote = repositories.open(f"{server.url}/gitops.git", GitCredentials(USER, PASSWORD))

    def redirect(exchange: Exchange, path: str) -> bool:
        exchange.refuse(301, "Location", f"http://{server.url.removeprefix('https://')}{exchange.path}")
        return True

    server.trouble = redirect
    with pytest.raises(RepositoryUnreachable, match="redirects to http://"):
        await remote.head("main")


async def test_a_token_is_renewed_without_another_mirror(
    repositories: Repositories, server: SmartServer, tmp_path: Path
) -> None:
    old = GitCredentials(USER, "of an hour ago", identity="app 1, installation 2")
    url = f"{server.url}/gitops.git"
    with pytest.raises(AuthenticationFailed):
        await repositories.open(url, old).head("main")
    await repositories.open(url, dataclasses.replace(old, password=PASSWORD)).head("main")
    assert len(mirrors(tmp_path)) == 1


async def test_credentials_do_not_follow_a_redirect_to_another_host(
    remote: Repository, server: SmartServer, tmp_path: Path, certificate: Path
) -> None:
    with serving(tmp_path, certificate) as stranger:

        def redirect(exchange: Exchange, path: str) -> bool:
            exchange.refuse(301, "Location", f"{stranger.url}{exchange.path}")
            return True

        server.trouble = redirect
        with pytest.raises(RepositoryUnreachable, match=f"redirects to {stranger.url}/gitops.git") as caught:
            await remote.head("main")
        assert not caught.value.transient
        assert stranger.requests == []


async def test_an_untrusted_certificate_is_named(repositories: Repositories, tmp_path: Path) -> None:
    with (
        serving(tmp_path, self_signed(tmp_path)) as stranger,
        pytest.raises(RepositoryUnreachable, match="certificate") as caught,
    ):
        await repositories.open(f"{stranger.url}/gitops.git").head("main")
    assert "SSL_CERT_FILE" in caught.value.remedy


async def test_a_proxy_of_the_environment_is_used(
    bare: Git, tmp_path: Path, runner: GitRunner, clock: VirtualClock
) -> None:
    bare("config", "http.receivepack", "true")
    host = "http://git.example.org:3000"
    repositories = Repositories(
        tmp_path / "cache", runner=runner, clock=clock, allow_local=False, insecure=["git.example.org:3000"]
    )
    remote = repositories.open(f"{host}/gitops.git", GitCredentials(USER, PASSWORD))

    def forward(exchange: Exchange, path: str) -> bool:
        assert exchange.path.startswith(host)
        exchange.path = exchange.path.removeprefix(host)
        exchange.serve()
        return True

    with serving(bare.directory.parent, None) as proxy, pytest.MonkeyPatch.context() as patch:
        proxy.trouble = forward
        patch.setenv("http_proxy", proxy.url)
        patch.delenv("no_proxy", raising=False)
        patch.delenv("NO_PROXY", raising=False)
        landed = await remote.land("main", setting("dev", b"v2\n"), message("dev"))
    assert bare("rev-parse", "main") == landed.commit
    await repositories.close()
