"""Request the digest of a tag from a registry, by the OCI distribution specification.

    HEAD /v2/<path>/manifests/<tag>      200 with Docker-Content-Digest
                                         401 with the name of a token service; then once more with its token

The author of a Bundle names a registry, and a registry names its token service, while the controller can reach
addresses that neither of them can. So both must be hosts in the operator's list, over https (on loopback over http),
and redirects are not followed. The implementation of `Requests` checks addresses, and limits time and size.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Protocol
from urllib.parse import urlsplit

from kardinal.bounded import ForeignBytes, JsonLimits, NotJson, OverLimit, decode, mebibytes
from kardinal.git.secret_hosts import host_allowed, host_of
from kardinal.objects.errors import KardinalError
from kardinal.objects.image_reference import ImageReference
from kardinal_controller.registries.challenge import read_challenge, token_url
from kardinal_controller.registries.errors import RegistryError
from kardinal_controller.registries.pull_secrets import Logins

__all__ = ["FLAG", "RegistryClient", "RegistryReply", "Requests"]

FLAG = "--allow-registries"

_DOCKER_HUB = "docker.io"
_DOCKER_HUB_API = "registry-1.docker.io"
_ACCEPT = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}")
_TOKEN_LIMIT = 32 << 10
_TOKENS = JsonLimits(size=64 << 10, depth=8, containers=100, pieces=1_000)

FOREIGN = ForeignBytes(
    "answers of image registries and their token services",
    of="registry that the operator lists",
    size=mebibytes(_TOKENS.size),
    unpacked="asked for uncompressed, never unpacked",
    structure=_TOKENS.structure,
    time="60 s a request",
    held="one for each question",
    decoded="on the event loop",
    tests=("attacks/test_registries.py::test_an_endless_manifest_is_cut_off",),
)


class RegistryReply(Protocol):
    """An answer, with header names in lower case."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def body(self) -> bytes: ...


class Requests(Protocol):
    """Make one request without following redirects, to a checked address, with limits on time and size."""

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None = None
    ) -> RegistryReply: ...


class RegistryClient:
    """Ask the registries that match `hosts`, the operator's list of patterns, for example `ghcr.io`."""

    def __init__(self, hosts: Sequence[str], requests: Requests) -> None:
        self._hosts = hosts
        self._requests = requests

    async def digest(self, image: ImageReference, logins: Logins | None = None) -> str:
        """Return the present digest of an image's tag. Raises `RegistryError`."""
        registry, _, path = image.canonical.partition("/")
        self._check_listed(registry, f"registry {registry} is not asked")
        url = f"{_base(registry)}/v2/{path}/manifests/{image.tag}"
        headers = {"Accept": _ACCEPT}
        reply = await self._ask("HEAD", url, headers)
        if reply.status == 401:
            headers["Authorization"] = await self._authorization(reply, registry, path, logins)
            reply = await self._ask("HEAD", url, headers)
        _check_status(reply, registry, image)
        digest = reply.headers.get("docker-content-digest")
        if digest is None:
            # For an older registry, the digest is computed from the manifest.
            reply = await self._ask("GET", url, headers)
            _check_status(reply, registry, image)
            digest = reply.headers.get("docker-content-digest") or f"sha256:{hashlib.sha256(reply.body).hexdigest()}"
        if not _DIGEST.fullmatch(digest):
            raise RegistryError(f"registry {registry} answers with a digest that is none for {image}")
        return digest

    async def _authorization(self, reply: RegistryReply, registry: str, path: str, logins: Logins | None) -> str:
        """Return the Authorization header that the registry demands with its answer."""
        challenge = read_challenge(reply.headers.get("www-authenticate", ""))
        if challenge.scheme == "basic":
            login = logins.authorization(registry, sent_to=registry) if logins is not None else None
            if login is None:
                raise RegistryError(_no_login(registry))
            return login
        if challenge.scheme != "bearer":
            raise RegistryError(f"registry {registry} asks for an authentication that is not known here")
        url = token_url(challenge, registry=registry, path=path)
        host = host_of(url)
        self._check_listed(host, f"registry {registry} sends to token service {host}, which is not asked")
        if urlsplit(url).scheme != "https" and not _is_loopback(host):
            raise RegistryError(f"registry {registry} sends to token service {host} without TLS")
        headers = {"Accept": "application/json"}
        if logins is not None and (login := logins.authorization(registry, sent_to=host)) is not None:
            headers["Authorization"] = login
        answer = await self._ask("GET", url, headers)
        if answer.status in (401, 403):
            raise RegistryError(_no_login(registry))
        if answer.status != 200:
            raise _unexpected(answer, f"token service {host}")
        return f"Bearer {_token(answer, host)}"

    def _check_listed(self, host: str, what: str) -> None:
        if not self._hosts or not host_allowed(host, self._hosts):
            raise RegistryError(f"{what}: ask the operator for {FLAG} {host}")

    async def _ask(self, method: str, url: str, headers: Mapping[str, str]) -> RegistryReply:
        common = {"Accept-Encoding": "identity", "User-Agent": "kardinal"}
        try:
            return await self._requests.request(method, url, headers={**common, **headers})
        except KardinalError as error:
            raise RegistryError(str(error), transient=error.transient) from None


def _base(registry: str) -> str:
    host = _DOCKER_HUB_API if registry == _DOCKER_HUB else registry
    return f"{'http' if _is_loopback(registry) else 'https'}://{host}"


def _is_loopback(host: str) -> bool:
    """Return whether a host is this machine by its name, so that the connection does not leave it."""
    name = urlsplit(f"//{host}").hostname or ""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _check_status(reply: RegistryReply, registry: str, image: ImageReference) -> None:
    if reply.status == 404:
        raise RegistryError(f"registry {registry} has no {image}: push it, or correct the reference")
    if reply.status in (401, 403):
        raise RegistryError(_no_login(registry))
    if reply.status != 200:
        raise _unexpected(reply, f"registry {registry}")


def _unexpected(reply: RegistryReply, who: str) -> RegistryError:
    if 300 <= reply.status < 400:
        return RegistryError(f"{who} answers {reply.status}: redirects are not followed; name the final host")
    return RegistryError(f"{who} answers {reply.status}", transient=reply.status == 429 or reply.status >= 500)


def _no_login(registry: str) -> str:
    return (
        f"registry {registry} does not let the image be read: name a Secret with a login for it in spec.pullSecretRef "
        "of the Pipeline, or correct the login"
    )


def _token(answer: RegistryReply, host: str) -> str:
    try:
        document = decode(answer.body, _TOKENS)
    except (OverLimit, NotJson):
        document = None
    found = [document.get(key) for key in ("token", "access_token")] if isinstance(document, dict) else []
    token = next((each for each in found if isinstance(each, str) and each), "")
    if not token or len(token) > _TOKEN_LIMIT or not token.isascii() or not token.isprintable():
        raise RegistryError(f"token service {host} answers without a token")
    return token
