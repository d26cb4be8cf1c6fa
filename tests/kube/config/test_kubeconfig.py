"""Finding the API server and the credentials, and saying what to do when there are none."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kardinal.kube import ConfigError, load_connection
from tests.kube.config.conftest import SECRET, Identity, config


async def test_a_token_and_the_namespace_of_the_context_are_read(write: Callable[[object], Path]) -> None:
    connection = await load_connection(write(config(token=SECRET)))
    assert connection.server == "http://127.0.0.1:1"
    assert connection.namespace == "team"
    assert (await connection.access()).authorization == f"Bearer {SECRET}"


async def test_another_context_can_be_chosen(write: Callable[[object], Path]) -> None:
    assert (await load_connection(write(config()), "there")).namespace == "default"


async def test_embedded_certificates_are_used_and_leave_no_file(
    write: Callable[[object], Path], authority: Identity
) -> None:
    certificate, key = (base64.b64encode(text.encode()).decode() for text in (authority.certificate, authority.key))
    content = config(**{"client-certificate-data": certificate, "client-key-data": key})
    content["clusters"][0]["cluster"] = {
        "server": "https://127.0.0.1:1",
        "certificate-authority-data": certificate,
    }
    path = write(content)
    for _ in range(3):
        connection = await load_connection(path)
        tls = (await connection.access()).tls
        assert tls is not None
        assert len(tls.get_ca_certs()) == 1
        assert tls.check_hostname
    # The leak detectors look for open and forgotten files.


async def test_an_unverified_cluster_is_taken_at_its_word(write: Callable[[object], Path]) -> None:
    content = config()
    content["clusters"][0]["cluster"] = {"server": "https://127.0.0.1:1", "insecure-skip-tls-verify": True}
    tls = (await (await load_connection(write(content))).access()).tls
    assert tls is not None
    assert not tls.check_hostname


async def test_the_explicit_file_comes_before_the_variable_and_that_before_the_home(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def named(server: str) -> dict[str, Any]:
        content = config()
        content["clusters"][0]["cluster"]["server"] = server
        return content

    write(named("http://home"), "home/.kube/config")
    assert (await load_connection()).server == "http://home"
    first = write(named("http://first"), "first")
    second = write(named("http://second"), "second")
    monkeypatch.setenv("KUBECONFIG", f"/does/not/exist:{first}:{second}")
    assert (await load_connection()).server == "http://first"
    assert (await load_connection(second)).server == "http://second"


async def test_first_of_entries_with_one_name_and_of_current_contexts_counts(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = config(token="first")
    second = config(token="second")
    del first["current-context"]
    second["current-context"] = "there"
    second["clusters"].append({"name": "other", "cluster": {"server": "http://other"}})
    second["contexts"].append({"name": "elsewhere", "context": {"cluster": "other", "user": "u"}})
    third = {**config(), "current-context": "elsewhere"}
    paths = (write(content, name) for name, content in {"a": first, "b": second, "c": third}.items())
    monkeypatch.setenv("KUBECONFIG", ":".join(map(str, paths)))
    connection = await load_connection()
    assert connection.namespace == "default"
    assert (await connection.access()).authorization == "Bearer first"
    assert (await load_connection(context="elsewhere")).server == "http://other"


async def test_a_file_of_the_list_that_is_broken_is_the_one_that_is_named(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{write(config())}:{write('a: [b', 'broken')}")
    with pytest.raises(ConfigError, match=r"cannot be used: \S+/broken is not YAML"):
        await load_connection()


async def test_without_any_configuration_the_error_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"--kubeconfig.*KUBECONFIG.*kardinal local up"):
        await load_connection()


async def test_a_file_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="missing does not exist"):
        await load_connection(tmp_path / "missing")
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
    with pytest.raises(ConfigError, match="KUBECONFIG names /nowhere/config"):
        await load_connection()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not a well-formed"),
        ("- a\n- b\n", "not a well-formed"),
        ("a: [b\n", "not a well-formed"),
        ({**config(), "current-context": ""}, "no current-context: choose one of here, there"),
        ({**config(), "current-context": "gone"}, "no context 'gone': choose one of here, there"),
        ({**config(token=SECRET), "clusters": []}, "incomplete"),
        ({**config(token=SECRET), "clusters": [{"name": "c", "cluster": {"server": "ftp://x"}}]}, r"http\(s\) URL"),
        ({**config(token=SECRET), "clusters": [{"name": "c"}]}, "incomplete|not a well-formed"),
        ({**config(token=SECRET), "users": [{"name": "v", "user": {"token": SECRET}}]}, "there is no user 'u'"),
        ({**config(token=SECRET), "users": {"u": {"token": SECRET}}}, "users of .* is not a list"),
        ({**config(token=SECRET), "users": [{"user": {"token": SECRET}}]}, r"users\[0\] of .* has no name"),
        ({**config(token=SECRET), "users": [{"name": "u", "user": SECRET}]}, "user 'u' of .* is not a mapping"),
        ({**config(), "contexts": [{"name": "here", "context": {"user": "u"}}]}, "context 'here' names no cluster"),
    ],
    ids=[
        *("empty", "a list", "not YAML", "no context", "unknown context", "no cluster", "no URL", "hollow cluster"),
        *("no user", "no list", "no name", "no mapping", "hollow context"),
    ],
)
async def test_a_broken_file_is_explained_without_quoting_credentials(
    write: Callable[[object], Path], content: object, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        await load_connection(write(content))
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
