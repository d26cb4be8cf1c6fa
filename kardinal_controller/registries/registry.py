"""One question to a registry: which digest has this tag? By the distribution specification of OCI.

    HEAD /v2/<path>/manifests/<tag>      200 with Docker-Content-Digest
                                         401 with the name of a token service, which is asked, then once more

Who writes a Bundle names a registry, and a registry names its token service; the controller stands where neither may
reach. So both must be hosts of the operator's list, by https (on loopback by http), and no redirect is followed. Who
makes the requests looks at addresses, and bounds time and size.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Protocol
from urllib.parse import urlsplit

from kardinal.api.image import ImageReference
from kardinal.bounded import ForeignBytes, JsonLimits, NotJson, OverLimit, decode, mebibytes
from kardinal.git.secret_hosts import host_allowed
from kardinal.objects.errors import KardinalError
from kardinal_controller.registries.challenge import read_challenge, token_url
from kardinal_controller.registries.errors import RegistryError
from kardinal_controller.registries.pull_secrets import Logins

__all__ = ["FLAG", "Registry", "Reply", "Requests"]

FLAG = "--allow-registries"

_DOCKER_HUB, _DOCKER_HUB_API = "docker.io", "registry-1.docker.io"
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


class Reply(Protocol):
    """An answer; names of headers are in lower case."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def body(self) -> bytes: ...


class Requests(Protocol):
    """Makes one request, without following redirects, to an address that is checked, in bounded time and size."""

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None = None
    ) -> Reply: ...


class Registry:
    """Asks the registries that `hosts`, patterns of the operator, list."""

    def __init__(self, hosts: Sequence[str], requests: Requests) -> None:
        self._hosts = hosts
        self._requests = requests

    async def digest(self, image: ImageReference, logins: Logins | None = None) -> str:
        """Return the digest that the tag of an image has now. Raises `RegistryError`."""
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
            # An older registry: the digest is that of the manifest.
            reply = await self._ask("GET", url, headers)
            _check_status(reply, registry, image)
            digest = reply.headers.get("docker-content-digest") or f"sha256:{hashlib.sha256(reply.body).hexdigest()}"
        if not _DIGEST.fullmatch(digest):
            raise RegistryError(f"registry {registry} answers with a digest that is none for {image}")
        return digest

    async def _authorization(self, reply: Reply, registry: str, path: str, logins: Logins | None) -> str:
        """Return what to show to the registry after it has asked for it."""
        challenge = read_challenge(reply.headers.get("www-authenticate", ""))
        if challenge.scheme == "basic":
            login = logins.authorization(registry, sent_to=registry) if logins is not None else None
            if login is None:
                raise RegistryError(_no_login(registry))
            return login
        if challenge.scheme != "bearer":
            raise RegistryError(f"registry {registry} asks for an authentication that is not known here")
        url = token_url(challenge, registry=registry, path=path)
        host = _host(url)
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

    async def _ask(self, method: str, url: str, headers: Mapping[str, str]) -> Reply:
        common = {"Accept-Encoding": "identity", "User-Agent": "kardinal"}
        try:
            return await self._requests.request(method, url, headers={**common, **headers})
        except KardinalError as error:
            raise RegistryError(str(error), transient=error.transient) from None


def _base(registry: str) -> str:
    host = _DOCKER_HUB_API if registry == _DOCKER_HUB else registry
    return f"{'http' if _is_loopback(registry) else 'https'}://{host}"


def _host(url: str) -> str:
    """Return `host[:port]` of a URL, as lists of hosts have it."""
    parts = urlsplit(url)
    name = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else (parts.hostname or "")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return name if port == 443 else f"{name}:{port}"


def _is_loopback(host: str) -> bool:
    """Return whether a host is this machine by its name, so that nothing can come between."""
    name = urlsplit(f"//{host}").hostname or ""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _check_status(reply: Reply, registry: str, image: ImageReference) -> None:
    if reply.status == 404:
        raise RegistryError(f"registry {registry} has no {image}: push it, or correct the reference")
    if reply.status in (401, 403):
        raise RegistryError(_no_login(registry))
    if reply.status != 200:
        raise _unexpected(reply, f"registry {registry}")


def _unexpected(reply: Reply, who: str) -> RegistryError:
    if 300 <= reply.status < 400:
        return RegistryError(f"{who} answers {reply.status}: redirects are not followed; name the final host")
    return RegistryError(f"{who} answers {reply.status}", transient=reply.status == 429 or reply.status >= 500)


def _no_login(registry: str) -> str:
    return (
        f"registry {registry} does not let the image be read: name a Secret with a login for it in spec.pullSecretRef "
        "of the Pipeline, or correct the login"
    )


def _token(answer: Reply, host: str) -> str:
    try:
        document = decode(answer.body, _TOKENS)
    except (OverLimit, NotJson):
        document = None
    found = [document.get(key) for key in ("token", "access_token")] if isinstance(document, dict) else []
    token = next((each for each in found if isinstance(each, str) and each), "")
    if not token or len(token) > _TOKEN_LIMIT or not token.isascii() or not token.isprintable():
        raise RegistryError(f"token service {host} answers without a token")
    return token
