"""Two names are other hosts, where ssh is spoken on the port of https; nothing that looks like them is."""

from __future__ import annotations

import pytest

from kardinal.git.secret_hosts import host_allowed, refused_host
from kardinal.promotion.api import Pipeline
from kardinal.promotion.api.policy_gate import GateMatch
from kardinal.promotion.policy.binding import Binding, places_of
from kardinal.scm import PROVIDERS
from kardinal.tree.repository_url import InvalidRepositoryURL, RepositoryURL, repository_key, same_host
from tests.support.names import DEV
from tests.support.objects import pipeline

GITHUB = "ssh://git@ssh.github.com:443/acme/config.git"
GITLAB = "ssh://git@altssh.gitlab.com:443/acme/config"
OTHERS = [
    "ssh://git@ssh.github.com/acme/config",
    "ssh://git@ssh.github.com:22/acme/config",
    "ssh://git@ssh.github.com:4430/acme/config",
    "git@ssh.github.com:acme/config",
    "https://ssh.github.com/acme/config",
    "https://ssh.github.com:443/acme/config",
    "ssh://git@ssh.github.com.evil.example:443/acme/config",
    "ssh://git@evil-ssh.github.com:443/acme/config",
    "ssh://git@ssh.github.com@evil.example:443/acme/config",
    "ssh://git@altssh.github.com:443/acme/config",
    "ssh://git@ssh.gitlab.com:443/acme/config",
    "ssh://git@ssh.github.community:443/acme/config",
    "ssh://git@evil.example:443/ssh.github.com/config",
]


def host_of(url: str) -> str:
    return RepositoryURL.parse(url, allow_local=False).host


def api_of(provider: str, url: str) -> str:
    return PROVIDERS[provider].api_host(RepositoryURL.parse(url, allow_local=False).text)


def bound(pattern: str, url: str) -> bool:
    (place,) = places_of(Pipeline.model_validate(pipeline(url, provider="git", environments=[DEV])))
    return Binding.of(GateMatch(repositories=(pattern,))).holds(place)


def marked(hosts: str) -> dict[str, object]:
    labels = {"kardinal.io/credentials": "git"}
    annotations = {"kardinal.io/hosts": hosts}
    return {"metadata": {"name": "git", "namespace": "team", "labels": labels, "annotations": annotations}}


@pytest.mark.parametrize(
    ("url", "host", "provider"),
    [
        (GITHUB, "github.com", "github"),
        ("ssh://git@SSH.GitHub.com.:443/acme/config", "github.com", "github"),
        (GITLAB, "gitlab.com", "gitlab"),
    ],
)
def test_ssh_on_the_port_of_https_counts_as_the_host(url: str, host: str, provider: str) -> None:
    usual = f"ssh://git@{host}/acme/config.git"
    assert host_of(url) == host_of(usual) == f"{host}:22"
    assert repository_key(url) == repository_key(usual) == f"{host}/acme/config"
    assert same_host(url, usual)
    assert api_of(provider, url) == api_of(provider, f"https://{host}/acme/config")
    assert host_allowed(host_of(url), [f"{host}:22"])
    assert refused_host(marked(f"{host}:22"), host_of(url)) == ""
    for pattern in (f"{host}/acme/*", f"https://{host}/acme/config", f"git@{host}:acme/config", url):
        assert bound(pattern, url)
        assert bound(pattern, usual)


def test_ssh_url_is_connected_to_as_written() -> None:
    assert RepositoryURL.parse(GITHUB, allow_local=False).text == "ssh://git@ssh.github.com:443/acme/config.git"


@pytest.mark.parametrize("url", OTHERS)
def test_nothing_else_counts_as_another_host(url: str) -> None:
    try:
        host = host_of(url)
    except InvalidRepositoryURL:
        return
    assert not same_host(url, "ssh://git@github.com/acme/config")
    assert not host_allowed(host, ["github.com", "github.com:22", "gitlab.com", "gitlab.com:22"])
    assert "is not marked" in refused_host(marked("github.com,github.com:22,gitlab.com,gitlab.com:22"), host)
    for provider in ("github", "gitlab"):
        assert api_of(provider, url) not in ("api.github.com", "gitlab.com")
    assert not bound("gitlab.com/acme/*", url)


def test_a_pattern_of_the_other_name_goes_on_to_bind_it() -> None:
    for pattern in ("ssh.github.com/acme/*", "ssh.github.com:443/acme/*", GITHUB):
        assert bound(pattern, GITHUB)
    assert bound("ssh.github.com/acme/*", "ssh://git@ssh.github.com/acme/config")
    assert not bound("ssh.github.com:4430/acme/*", "https://github.com/acme/config")
