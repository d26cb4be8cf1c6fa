"""A kubeconfig that came from elsewhere gives a server and credentials, and nothing of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kardinal.kube import ConfigError, embedded_access

SECRET = "not-to-be-told"


def kubeconfig(*, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> str:
    return yaml.safe_dump(
        {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {"server": "https://k.example.com:6443", **(cluster or {})}}],
            "users": [{"name": "u", "user": {"token": SECRET, **(user or {})}}],
        }
    )


def test_a_server_and_a_token_are_enough() -> None:
    access = embedded_access(kubeconfig())
    assert (access.server, access.authorization) == ("https://k.example.com:6443", f"Bearer {SECRET}")


@pytest.mark.parametrize(
    ("cluster", "user", "words"),
    [
        ({}, {"exec": {"command": "touch", "args": ["x"]}}, "exec of user 'u'"),
        ({}, {"auth-provider": {"name": "oidc"}}, "auth-provider of user 'u'"),
        ({}, {"tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"}, "tokenFile of user 'u'"),
        ({}, {"client-certificate": "/etc/passwd"}, "client-certificate of user 'u'"),
        ({}, {"client-key": "/etc/passwd"}, "client-key of user 'u'"),
        ({}, {"as": "system:admin"}, "as of user 'u'"),
        ({"certificate-authority": "/etc/passwd"}, {}, "certificate-authority of cluster 'k'"),
        ({"proxy-url": "http://169.254.169.254"}, {}, "proxy-url of cluster 'k'"),
        ({"insecure-skip-tls-verify": True}, {}, "insecure-skip-tls-verify of cluster 'k'"),
        ({"server": "http://169.254.169.254"}, {}, "no https URL"),
        ({"server": "file:///etc/passwd"}, {}, "no https URL"),
        ({"certificate-authority-data": "AAAA"}, {}, "not well-formed"),
    ],
)
def test_embedded_kubeconfig_that_reaches_beyond_itself_is_refused_by_name(
    cluster: dict[str, Any], user: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        embedded_access(kubeconfig(cluster=cluster, user=user))
    assert SECRET not in str(refused.value)
    assert "kardinal-" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x" * 300_000, "more than 262,144 characters"),
        ("x: [" + "a," * 3_000 + "a]", "more than 2,000 values"),
        ("[" * 1_000, "16 levels"),
        ("a: &a [x]\nb: *a\n", "an alias"),
    ],
    ids=["long", "values", "nested", "alias"],
)
def test_costly_kubeconfig_is_refused_before_loading(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        embedded_access(text)


@pytest.mark.parametrize("text", ["", "- a", "{", "current-context: c", f"{SECRET}: [", "\x00"])
def test_invalid_kubeconfig_is_reported_without_its_text(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the kubeconfig cannot be used") as refused:
        embedded_access(text)
    assert SECRET not in str(refused.value)
    assert "kardinal-" not in str(refused.value)
