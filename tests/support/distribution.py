"""A real registry in the place of the stand-in, for tests that ask for `serving` and where it is built.

`make test-registry` builds it. What a test needs beside (a token service, an answer of its own) the stand-in has alone.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import ssl
import urllib.request
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from hack.kube.assets import built
from hack.registry.assets import REGISTRY
from hack.registry.server import RunningRegistry, running_registry
from tests.support.image_registry import digest_of, serving_registry
from tests.support.secret_values import secret_value

__all__ = ["LOGIN", "Distribution", "ServedRegistry", "Serving", "serving_distribution"]

LOGIN = f"robot:{secret_value('registry')}"
_HTPASSWD = "robot:$2b$04$abcdefghijklmnopqrstuunBxPLyLMfr4JzqPwvS4yElmCJIsrmMy\n"
"""The login as a registry keeps it, by bcrypt."""
_INDEX = "application/vnd.oci.image.index.v1+json"
_READ = re.compile(r'"((?:HEAD|GET) \S+) HTTP/')


class ServedRegistry(Protocol):
    """A registry of either kind, as tests use it."""

    @property
    def host(self) -> str: ...

    @property
    def heard(self) -> Sequence[object]:
        """Return the requests that have read."""
        ...

    def push(self, path: str, tag: str, manifest: bytes) -> str:
        """Let a tag be something else than other contents are; returns its digest."""
        ...


Serving = Callable[..., AbstractAsyncContextManager[ServedRegistry]]


@dataclass(frozen=True)
class Distribution:
    """A registry that runs; it takes no manifest that is none, so what is pushed is an index that says it."""

    running: RunningRegistry
    login: str | None
    certificate: Path | None

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.running.port}"

    @property
    def port(self) -> int:
        return self.running.port

    @property
    def heard(self) -> Sequence[object]:
        return _READ.findall(self.running.log)

    def push(self, path: str, tag: str, manifest: bytes) -> str:
        index = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": [], "annotations": {"is": manifest.decode()}}
        body = json.dumps(index).encode()
        scheme = "http"
        tls = None
        if self.certificate is not None:
            scheme = "https"
            tls = ssl.create_default_context(cafile=str(self.certificate))
        url = f"{scheme}://{self.host}/v2/{path}/manifests/{tag}"
        request = urllib.request.Request(url, data=body, method="PUT", headers={"Content-Type": _INDEX})  # noqa: S310
        if self.login is not None:
            request.add_header("Authorization", f"Basic {base64.b64encode(self.login.encode()).decode()}")
        with urllib.request.urlopen(request, context=tls, timeout=30) as answer:  # noqa: S310
            assert answer.status == 201
        return digest_of(body)


@asynccontextmanager
async def serving_distribution(
    *, login: str | None = None, certificate: Path | None = None
) -> AsyncIterator[Distribution]:
    """Run a registry until the end of the block, which lets `login` alone in where that is given."""
    assert login in (None, LOGIN), "the registry keeps the hash of one login"
    htpasswd = _HTPASSWD if login is not None else None
    with ExitStack() as stack:
        running = running_registry(certificate=certificate, htpasswd=htpasswd)
        yield Distribution(await asyncio.to_thread(stack.enter_context, running), login, certificate)


@pytest.fixture
def distribution() -> Callable[..., AbstractAsyncContextManager[Distribution]]:
    """Return what runs a real registry."""
    if not built(REGISTRY):
        pytest.skip("needs a real registry: `make test-registry`")
    return serving_distribution


@pytest.fixture(params=["stand-in", "distribution"])
def serving(request: pytest.FixtureRequest) -> Any:
    """Return what serves a registry: the stand-in, and then the real one."""
    return serving_registry if request.param == "stand-in" else request.getfixturevalue("distribution")
