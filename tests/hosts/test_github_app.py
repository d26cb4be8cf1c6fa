"""GitHub Apps: tokens are minted once, for one repository, ahead of expiry, and their key shows nowhere."""

from __future__ import annotations

import asyncio
import os
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from kardinal.objects.errors import KardinalError
from kardinal.scm import PROVIDERS, AccessDenied, PullRequests
from kardinal.scm.http import HostSessions
from tests.hosts.fakes.faults import Fault
from tests.hosts.fakes.github_state import App
from tests.hosts.github_host import GitHubHost
from tests.hosts.host import new_pull_request
from tests.support.clock import VirtualClock

MINT = r"/access_tokens$"


def _pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.fixture(scope="session")
def app_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture
def app(github: GitHubHost, app_key: rsa.RSAPrivateKey) -> App:
    """Install an App, and put its key into kardinal's Secret."""
    public = app_key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    github.values = {"appId": "4711\n", "privateKey": _pem(app_key)}
    return github.server.install(4711, public)


@pytest.fixture
async def as_app(app: App, github: GitHubHost) -> PullRequests:
    return await github.connect(clock=github.clock)


async def test_an_app_does_what_a_token_does(github: GitHubHost, app: App, as_app: PullRequests) -> None:
    opened = await as_app.open(new_pull_request())
    assert opened.author == "kardinal[bot]"
    for text in ("1 gate is closed", "all gates are open"):
        await as_app.comment(1, text, marker="progress")
    assert len(await github.comments(1)) == 1
    access = await as_app.access()
    assert (access.read, access.push) == (True, True)
    assert (await as_app.merge(1, by="kardinal")).merged_by == "kardinal[bot]"
    assert app.minted == 1


@pytest.mark.parametrize("client_id", ["Iv23liAbCdEfGhIjKlMn", "Iv1.8a61f9b3a7aba766"])
async def test_a_token_is_minted_for_a_client_id(github: GitHubHost, app: App, client_id: str) -> None:
    app.client_id = github.values["appId"] = client_id
    assert await (await github.connect(clock=github.clock)).list() == []


async def test_an_app_that_is_named_by_its_client_id_knows_its_comments(github: GitHubHost, app: App) -> None:
    github.values["appId"] = app.client_id
    pulls = await github.connect(clock=github.clock)
    await pulls.open(new_pull_request())
    for text in ("1 gate is closed", "all gates are open"):
        await pulls.comment(1, text, marker="progress")
    assert (await github.comments(1))[0].startswith("all gates are open")
    assert len(await github.comments(1)) == 1


async def test_access_is_what_was_granted_to_the_app(app: App, as_app: PullRequests) -> None:
    app.permissions["contents"] = "read"
    access = await as_app.access()
    assert (access.read, access.push) == (True, False)


async def test_an_app_may_ask_teams_only_if_it_knows_the_members_of_the_organisation(
    app: App, as_app: PullRequests
) -> None:
    access = await as_app.access(("pull-requests", "teams"))
    assert access.lacks == ("Pull requests: read and write, and of the organisation Members: read",)
    assert (await as_app.access(("pull-requests", "statuses"))).lacks == ()


async def test_an_app_with_the_permissions_of_the_guide_may_ask_teams(app: App, as_app: PullRequests) -> None:
    app.permissions["members"] = "read"
    assert (await as_app.access(("pull-requests", "statuses", "teams"))).lacks == ()


async def test_the_comment_of_another_app_with_our_marker_is_left_alone(
    github: GitHubHost, as_app: PullRequests
) -> None:
    await as_app.open(new_pull_request())
    github.comment_by_person(1, "not yours\n\n<!-- kardinal:progress -->")
    foreign = github.project.pulls[1].comments[0]
    foreign.login = "other[bot]"
    foreign.app = 1
    await as_app.comment(1, "all gates are open", marker="progress")
    assert (await github.comments(1))[0].startswith("not yours")
    assert len(await github.comments(1)) == 2


async def test_many_requests_at_once_mint_one_token_for_one_repository(
    github: GitHubHost, app: App, as_app: PullRequests
) -> None:
    await asyncio.gather(*(as_app.list("open") for _ in range(20)))
    assert app.minted == 1
    minting = github.server.requests("POST", "/access_tokens")
    assert [one.body for one in minting] == [{"repositories": ["config"]}]
    assert len(github.server.requests("GET", "/installation")) == 1


async def test_a_token_is_minted_anew_before_it_expires(app: App, as_app: PullRequests, moment: VirtualClock) -> None:
    for minutes, minted in ((0, 1), (54, 1), (2, 2), (54, 2), (60, 3)):
        moment.skip(minutes * 60)
        await as_app.list("open")
        assert app.minted == minted


async def test_a_wrong_clock_does_not_mint_for_every_request(
    github: GitHubHost, app: App, as_app: PullRequests, moment: VirtualClock
) -> None:
    app.lifetime = timedelta(minutes=4)  # as a clock that is late by an hour sees it
    for _ in range(3):
        await as_app.list("open")
    assert app.minted == 1


async def test_a_token_that_is_revoked_in_flight_is_replaced(
    github: GitHubHost, app: App, as_app: PullRequests
) -> None:
    await as_app.list("open")
    del github.server.identities["ghs_1"]
    assert (await as_app.open(new_pull_request())).number == 1
    assert app.minted == 2
    github.server.faults.append(Fault("GET", "/pulls/1$", status=401, body={"message": "Bad credentials"}, times=9))
    with pytest.raises(AccessDenied):
        await as_app.get(1)
    assert app.minted == 3  # once for a request, not until it works


async def test_a_repository_that_a_new_token_does_not_see_yet_is_asked_for_again(
    github: GitHubHost, as_app: PullRequests, moment: VirtualClock
) -> None:
    github.server.faults.append(Fault("GET", "/pulls$", status=404, body={"message": "Not Found"}, times=2))
    for seconds, transient in ((0, True), (61, False)):
        moment.skip(seconds)
        with pytest.raises(KardinalError, match=r"git\.url") as hidden:
            await as_app.list("open")
        assert hidden.value.blocked is not transient
    assert await as_app.list("open") == []


async def test_another_token_of_the_same_app_is_the_same_credential_to_git(
    github: GitHubHost, app: App, moment: VirtualClock
) -> None:
    async with HostSessions(clock=github.clock) as sessions:
        authenticator = PROVIDERS["github"].authenticate(github.values, github.target(sessions))
        assert authenticator is not None
        first = await authenticator.credentials()
        moment.skip(7200)
        second = await authenticator.credentials()
    assert app.minted == 2
    assert first.password != second.password
    assert first.key == second.key


async def test_git_gets_the_token_as_a_password(github: GitHubHost, app: App, tmp_path: Path) -> None:
    async with HostSessions(clock=github.clock) as sessions:
        authenticator = PROVIDERS["github"].authenticate(github.values, github.target(sessions))
        assert authenticator is not None
        credentials = await authenticator.credentials()
    assert (credentials.username, credentials.password) == ("x-access-token", "ghs_1")
    address = github.url.replace("https://", f"https://{credentials.username}:{credentials.password}@")
    authority = tmp_path / "ca.pem"
    authority.write_text(github.server.authority)
    done = await asyncio.to_thread(
        subprocess.run,
        ["git", "ls-remote", address, "refs/heads/main"],
        env=os.environ | {"GIT_SSL_CAINFO": str(authority), "GIT_CONFIG_GLOBAL": os.devnull},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout.split() == [github.tip("main"), "refs/heads/main"]


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (Fault("GET", "/installation$", status=404, body={"message": "Not Found"}), "Install the GitHub App"),
        (Fault("POST", MINT, status=401, body={"message": "'Expiration time' is too far away"}), "the clock"),
        (
            Fault("POST", MINT, status=422, body={"message": "no access to the repositories"}),
            "access to the repository",
        ),
        (Fault("POST", MINT, status=403, body={"message": "This installation has been suspended"}), "suspended"),
    ],
    ids=["not installed", "key refused", "repository not selected", "suspended"],
)
async def test_refused_app_says_why(
    github: GitHubHost, as_app: PullRequests, app_key: rsa.RSAPrivateKey, fault: Fault, says: str
) -> None:
    github.server.faults.append(fault)
    with pytest.raises(AccessDenied) as denied:
        await as_app.list("open")
    assert says in str(denied.value)
    assert denied.value.blocked
    assert _pem(app_key)[40:80] not in str(denied.value)


def _secrets() -> dict[str, dict[str, str]]:
    elliptic = _pem(ec.generate_private_key(ec.SECP256R1()))
    return {
        "no key": {"appId": "4711"},
        "no number": {"appId": "my-app", "privateKey": "geheim"},
        "path in the installation": {"appId": "1", "installationId": "1/../../users", "privateKey": "geheim"},
        "not a key": {"appId": "4711", "privateKey": "geheim"},
        "broken": {"appId": "4711", "privateKey": "-----BEGIN PRIVATE KEY-----\ngeheim\n-----END PRIVATE KEY-----"},
        "not RSA": {"appId": "4711", "privateKey": elliptic},
    }


@pytest.mark.parametrize("name", list(_secrets()))
async def test_a_key_that_cannot_be_used_is_refused_without_showing_it(github: GitHubHost, name: str) -> None:
    github.values = _secrets()[name]
    with pytest.raises(AccessDenied) as denied:
        await (await github.connect()).list("open")
    assert denied.value.field == "git.secretRef"
    assert "Secret" in denied.value.remedy
    chain: BaseException | None = denied.value
    while chain is not None:
        assert "geheim" not in repr(chain)
        assert isinstance(chain, KardinalError)
        chain = chain.__cause__
    assert not github.server.exchanges


async def test_an_installation_that_the_secret_names_is_not_looked_up(github: GitHubHost, app: App) -> None:
    github.values["installationId"] = "77"
    pulls = await github.connect(clock=github.clock)
    assert await pulls.list("open") == []
    assert not github.server.requests("GET", "/installation")
    assert "BEGIN" not in repr(pulls)
