"""The contents of pull Secrets, and the hosts to which their logins are sent."""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest

from kardinal_controller.registries.errors import RegistryError
from kardinal_controller.registries.pull_secrets import read_logins
from tests.registries.asking import pull_secret
from tests.support.secret_values import secret_value

PASSWORD = secret_value("registry-password")
BASIC = f"Basic {base64.b64encode(f'robot:{PASSWORD}'.encode()).decode()}"


@pytest.mark.parametrize(
    ("key", "registry"),
    [
        ("ghcr.io", "ghcr.io"),
        ("https://ghcr.io", "ghcr.io"),
        ("https://index.docker.io/v1/", "docker.io"),
        ("registry.example.com:5000", "registry.example.com:5000"),
    ],
)
def test_a_login_is_that_of_its_registry(key: str, registry: str) -> None:
    logins = read_logins(pull_secret({key: f"robot:{PASSWORD}"}, hosts=registry))
    assert logins.authorization(registry, sent_to=registry) == BASIC
    assert logins.authorization("other.example.com", sent_to="other.example.com") is None


def test_user_and_password_may_stand_apart() -> None:
    entry = {"auths": {"ghcr.io": {"username": "robot", "password": PASSWORD}}}
    assert read_logins(_secret(orjson.dumps(entry))).authorization("ghcr.io", sent_to="ghcr.io") == BASIC


@pytest.mark.parametrize("entry", [{}, {"auth": "%"}, {"auth": "cm9ib3Q="}, {"username": "robot"}, 7, None])
def test_an_entry_without_a_login_is_none(entry: Any) -> None:
    logins = read_logins(_secret(orjson.dumps({"auths": {"ghcr.io": entry}})))
    assert logins.authorization("ghcr.io", sent_to="ghcr.io") is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"auths": 7}', b"\xff", b"[" * 100_000])
def test_a_secret_of_another_shape_is_said_without_its_contents(content: bytes) -> None:
    with pytest.raises(RegistryError, match=r"is not of type kubernetes\.io/dockerconfigjson"):
        read_logins(_secret(content))


def _secret(content: bytes) -> dict[str, Any]:
    return pull_secret({}, hosts="ghcr.io") | {"data": {".dockerconfigjson": base64.b64encode(content).decode()}}
