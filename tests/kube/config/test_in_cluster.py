"""The service account of a pod."""

from __future__ import annotations

from pathlib import Path

import pytest

from kardinal.kube import ConfigError, load_connection


async def test_a_pod_uses_its_service_account(pod: Path) -> None:
    connection = await load_connection()
    access = await connection.access()
    assert connection.server == "https://10.0.0.1:443"
    assert connection.namespace == "team"
    assert access.authorization == "Bearer token-1"
    assert access.tls is not None
    assert len(access.tls.get_ca_certs()) == 1


async def test_a_namespace_that_is_not_mounted_is_the_default_one(pod: Path) -> None:
    (pod / "namespace").unlink()
    assert (await load_connection()).namespace == "default"


async def test_an_address_of_ipv6_is_bracketed(pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    assert (await load_connection()).server == "https://[fd00::1]:443"


async def test_a_rotated_token_is_read_within_a_minute(pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lifetime = (await (await load_connection()).access()).lifetime
    assert lifetime is not None
    assert 0 < lifetime <= 60
    monkeypatch.setattr("kardinal.kube.in_cluster.LIFETIME", 0.0)
    connection = await load_connection()
    (pod / "token").write_text("token-2")
    assert (await connection.access()).authorization == "Bearer token-2"


async def test_a_refused_token_is_read_again(pod: Path) -> None:
    connection = await load_connection()
    first = await connection.access()
    (pod / "token").write_text("token-2")
    assert (await connection.access()) is first
    assert (await connection.renew(first)).authorization == "Bearer token-2"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("token", None, "Service token file does not exist"),
        ("token", "\n", "Service token file exists but empty"),
        ("ca.crt", None, "Service certification file does not exist"),
        ("ca.crt", "", "Service certification file exists but empty"),
        ("ca.crt", "hello", "cannot be used"),
    ],
)
async def test_a_part_that_is_missing_is_named(pod: Path, name: str, content: str | None, message: str) -> None:
    if content is None:
        (pod / name).unlink()
    else:
        (pod / name).write_text(content)
    with pytest.raises(ConfigError, match=f"the service account of this pod cannot be used: .*{message}|{message}: "):
        await load_connection()


async def test_a_pod_without_a_port_is_told_so(pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_PORT")
    with pytest.raises(ConfigError, match="Service host/port is not set"):
        await load_connection()
