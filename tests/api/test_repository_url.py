"""Which repositories are accepted, and what the others are told."""

from __future__ import annotations

import pytest

from kardinal.git import GitCredentials
from kardinal.tree.repository_url import InvalidRepositoryURL, RepositoryURL, repository_key


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ("https://example.org/team/app.git", "https://example.org/team/app.git"),
        ("https://EXAMPLE.org:443/team/app/", "https://example.org/team/app"),
        ("https://example.org:8443/a..b", "https://example.org:8443/a..b"),
        ("https://[::1]/app", "https://[::1]/app"),
        ("https://[0:0::1]:0443/app", "https://[::1]/app"),
        ("https://example.org./app", "https://example.org/app"),
        ("/srv//git/./app.git/", "file:///srv/git/app.git"),
        ("file:///srv/git/app.git", "file:///srv/git/app.git"),
        ("file://localhost/srv/a%20b.git", "file:///srv/a b.git"),
        ("ssh://git@example.org/team/app.git", "ssh://git@example.org/team/app.git"),
        ("SSH://Git@EXAMPLE.org:22/team/app/", "ssh://Git@example.org/team/app"),
        ("ssh://git@[::1]:2222/app", "ssh://git@[::1]:2222/app"),
        ("git@example.org:team/app.git", "ssh://git@example.org/team/app.git"),
        ("git@example.org:/srv/app.git", "ssh://git@example.org/srv/app.git"),
        ("http://127.0.0.1:3000/app.git", "http://127.0.0.1:3000/app.git"),
        ("http://localhost/app.git", "http://localhost/app.git"),
        ("http://[::1]:80/app.git", "http://[::1]/app.git"),
    ],
)
def test_a_repository_has_one_normal_spelling(given: str, normal: str) -> None:
    assert RepositoryURL.parse(given, allow_local=True).text == normal


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://example.org/app.git",
        "http://127.0.0.1.example.org/app.git",
        "http://localhost.example.org/app.git",
        "http://127.0.0.1:443/app.git",
        "ssh://example.org/app.git",
        "ssh://-oProxyCommand=id@example.org/app.git",
        "ssh://git@-oProxyCommand=id/app.git",
        "ssh://git@-G/app.git",
        "git@-G:app.git",
        "https://-example.org/app.git",
        "ssh://git@example.org/~/app.git",
        "ssh://git@example.org/~git/app.git",
        "ssh://git@example.org/%7Egit/app.git",
        "git@example.org:~/app.git",
        "git@example.org:2222/app.git",
        "git@example.org://app.git",
        "git@example.org:",
        "example.org:app.git",
        "git@*.example.org:app.git",
        "git://example.org/app",
        "ext::sh -c id",
        "relative/path",
        "../app.git",
        "/srv/../etc",
        "file:///srv/%2e%2e/etc",
        "file://other/srv/app.git",
        "file:srv/app.git",
        "/",
        "https://",
        "https://example.org",
        "https://example.org/a/../b",
        "https://example.org/app?x=1",
        "https://example.org/app#x",
        "https://example.org:port/app",
        "https://example.org/a b",
        "https://example.org/.git",
        "https://example.org/a\nb",
        "https://example.org/" + "a" * 3000,
    ],
)
def test_invalid_repository_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidRepositoryURL):
        RepositoryURL.parse(url, allow_local=True)


@pytest.mark.parametrize(
    "spelling",
    [
        "https://git.example.org/Acme/GitOps",
        "HTTPS://GIT.example.ORG/acme/gitops.git",
        "https://git.example.org:443/acme/gitops.git/",
        "https://git.example.org:/acme/gitops",
        "https://git.example.org:0443/acme/gitops",
        "https://robot:secret@git.example.org/acme/gitops",
        "http://git.example.org/acme/gitops",
        "ssh://git@git.example.org:22/acme/gitops.git",
        "git@git.example.org:acme/gitops.git",
        "alice@GIT.example.org:/Acme/gitops",
        "https://git.example.org./acme/gitops",
        "https://git.example.org//acme/./gitops//",
        "https://git.example.org/acme%2Fgitops%2egit",
        "https://git.example.org/%61cme/%67itops.GIT",
        "https://git.example.org/acme/gitops/.git",
        "https://git.example.org/acme/gitops.git/.git/",
    ],
)
def test_every_spelling_of_a_repository_has_one_key(spelling: str) -> None:
    assert repository_key(spelling) == "git.example.org/acme/gitops"


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://git.example.org:8443/acme/gitops", "git.example.org:8443/acme/gitops"),
        ("https://git.example.org:80/acme/gitops", "git.example.org:80/acme/gitops"),
        ("https://[::ffff:10.0.0.1]/app", "10.0.0.1/app"),
        ("https://[2001:DB8:0::1]:8443/app", "[2001:db8::1]:8443/app"),
        ("https://10.0.0.1/app", "10.0.0.1/app"),
        ("https://example.org/e\u0301quipe/app", "example.org/\u00e9quipe/app"),
        ("https://example.org/%C3%89quipe/app", "example.org/\u00e9quipe/app"),
        ("https://example.org/a%20b/app", "example.org/a b/app"),
        ("/srv//Git/./app.git/", "file:///srv/git/app"),
        ("file://localhost/srv/git/app/.git", "file:///srv/git/app"),
    ],
)
def test_the_key_of_a_repository(url: str, key: str) -> None:
    assert repository_key(url) == key


@pytest.mark.parametrize(
    "url",
    [
        "https://2130706433/app",
        "https://127.1/app",
        "https://0x7f.0.0.1/app",
        "https://127.0.0.0x1/app",
        "https://010.0.0.1/app",
        "https://git..example.org/app",
        "https://git.example.org../app",
        "https://ex%61mple.org/app",
        "https://ex\u00e4mple.org/app",
        "https://good.example.org\\@example.org/app",
        "https://[fe80::1%25eth0]/app",
        "https://[::1/app",
        "https://example.org:0/app",
        "https://example.org:65536/app",
        "https://example.org:443:444/app",
        "https://example.org/acme;x=1/app",
        "https://example.org/acme\\app",
        "https://example.org/acme%5Capp",
        "https://example.org/acme%252Fapp",
        "https://example.org/acme%3fapp",
        "https://example.org/acme/%2e%2e/app",
        "https://example.org/acme/app%00",
        "https://example.org/acme/app%zz",
        "https://example.org/acme/app%e2%80%8b",
        "https://example.org/acme/app%ff",
        "https://example.org",
        "git@example.org:acme/../app",
        "example.org/acme/app",
        "/.git",
    ],
)
def test_a_spelling_that_could_be_read_in_two_ways_is_no_repository(url: str) -> None:
    with pytest.raises(InvalidRepositoryURL):
        repository_key(url)
    with pytest.raises(InvalidRepositoryURL):
        RepositoryURL.parse(url, allow_local=True)


def test_credentials_in_a_url_are_refused_and_not_repeated() -> None:
    for url in (
        "https://user:hunter2@example.org/app.git",
        "https://hunter2@example.org/app",
        "http://hunter2@127.0.0.1/app",
        "ssh://git:hunter2@example.org/app",
    ):
        with pytest.raises(InvalidRepositoryURL, match=r"secretRef") as caught:
            RepositoryURL.parse(url, allow_local=True)
        assert "hunter2" not in str(caught.value)
    for url in ("ftp://user:hunter2@example.org/app.git", "git:hunter2@example.org:app.git"):
        with pytest.raises(InvalidRepositoryURL) as caught:
            RepositoryURL.parse(url, allow_local=True)
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Example.org:443/app", "example.org"),
        ("https://example.org:22/app", "example.org:22"),
        ("ssh://git@example.org/app", "example.org:22"),
        ("git@[::1]:app", "[::1]:22"),
        ("ssh://git@ssh.example.org:443/app", "ssh.example.org"),
        ("http://localhost/app", "localhost:80"),
        ("/srv/app.git", ""),
    ],
)
def test_a_host_without_a_port_is_that_of_https(url: str, host: str) -> None:
    assert RepositoryURL.parse(url, allow_local=True).host == host


@pytest.mark.parametrize(
    ("allowed", "url", "accepted"),
    [
        ("git.example.org", "http://GIT.example.org/app", True),
        ("git.example.org:80", "http://git.example.org/app", True),
        ("git.example.org:3000", "http://git.example.org:3000/app", True),
        ("git.example.org", "http://git.example.org:3000/app", False),
        ("git.example.org:3000", "http://git.example.org/app", False),
        ("git.example.org", "http://other.example.org/app", False),
        ("git.example.org:443", "http://git.example.org:443/app", False),
    ],
)
def test_http_is_spoken_to_the_hosts_that_the_operator_names(allowed: str, url: str, accepted: bool) -> None:
    if accepted:
        assert RepositoryURL.parse(url, allow_local=False, insecure=[allowed]).scheme == "http"
        return
    with pytest.raises(InvalidRepositoryURL, match=r"in the clear|port 443"):
        RepositoryURL.parse(url, allow_local=False, insecure=[allowed])


def test_credentials_do_not_show_themselves() -> None:
    credentials = GitCredentials("robot", "hunter2")
    assert "hunter2" not in f"{credentials} {credentials!r} {[credentials]}"
