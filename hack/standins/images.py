"""Images of OCI in a registry without a login: build them from files, push them, and read a file of one.

The same files on the same base are the same bytes, and so the same digest.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

import aiohttp

from kardinal.objects.image_reference import ImageReference

__all__ = ["Registry", "RegistryError", "digest_of", "layer_of"]

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_LIMIT = 64 << 20
_SECONDS = 20.0


class RegistryError(Exception):
    """An answer of the registry that is none of those expected."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The repository of an image: the URL of its registry, and its path there."""

    registry: str
    path: str

    @classmethod
    def of(cls, reference: ImageReference) -> _Place:
        host, _, path = reference.repository.partition("/")
        return cls(f"http://{host}", path)

    @property
    def url(self) -> str:
        return f"{self.registry}/v2/{self.path}"


def digest_of(content: bytes) -> str:
    """Return the digest of bytes as registries write it."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def layer_of(files: Iterable[tuple[str, bool, bytes]]) -> bytes:
    """Return files (path, whether it can be executed, content) as an uncompressed layer."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for path, executable, content in sorted(files):
            member = tarfile.TarInfo(path)
            member.size = len(content)
            member.mode = 0o755 if executable else 0o644
            layer.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


class Registry:
    """A client of registries on loopback, which speak plain HTTP."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def digest(self, image: str) -> str:
        """Return the digest that a tag has now."""
        reference = ImageReference.parse(image)
        url = f"{_Place.of(reference).url}/manifests/{reference.digest or reference.tag or 'latest'}"
        _, headers = await self._ask("HEAD", url, (200,), headers={"Accept": _MANIFEST})
        return headers["Docker-Content-Digest"]

    async def push(self, image: str, layer: bytes, *, base: str | None = None) -> str:
        """Push a layer on those of a base as an image under its tag; return its reference with its digest."""
        reference = ImageReference.parse(image)
        place = _Place.of(reference)
        config: dict[str, Any] = {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}}
        layers: list[dict[str, Any]] = []
        if base is not None:
            config, layers = await self._base(base, place)
        packed = gzip.compress(layer, mtime=0)
        config["rootfs"]["diff_ids"].append(digest_of(layer))
        document = json.dumps(config, sort_keys=True).encode()
        layers.append(await self._blob(place, packed, _LAYER))
        manifest = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": await self._blob(place, document, _CONFIG),
            "layers": layers,
        }
        body = json.dumps(manifest, sort_keys=True).encode()
        url = f"{place.url}/manifests/{reference.tag or 'latest'}"
        await self._ask("PUT", url, (201,), data=body, headers={"Content-Type": _MANIFEST})
        return f"{reference.repository}@{digest_of(body)}"

    async def read_file(self, image: str, path: str) -> bytes | None:
        """Return a file of an image by its digest, out of the topmost layer that has it; all bytes are checked."""
        reference = ImageReference.parse(image)
        if reference.digest is None:
            raise RegistryError(f"{image} has no digest")
        place = _Place.of(reference)
        manifest = await self._manifest(place, reference.digest)
        for described in reversed(manifest["layers"]):
            packed = await self._checked(f"{place.url}/blobs/{described['digest']}", described["digest"])
            with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as layer:
                if path in layer.getnames() and (member := layer.extractfile(path)) is not None:
                    return member.read()
        return None

    async def _base(self, base: str, place: _Place) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return config and layers of a base, after mounting the layers in the repository of the image."""
        origin = _Place.of(ImageReference.parse(base))
        manifest = await self._manifest(origin, await self.digest(base))
        digest = manifest["config"]["digest"]
        config = json.loads(await self._checked(f"{origin.url}/blobs/{digest}", digest))
        for layer in manifest["layers"]:
            url = f"{place.url}/blobs/uploads/?mount={layer['digest']}&from={origin.path}"
            await self._ask("POST", url, (201,))
        return config, list(manifest["layers"])

    async def _manifest(self, place: _Place, digest: str) -> dict[str, Any]:
        content = await self._checked(f"{place.url}/manifests/{digest}", digest)
        found: dict[str, Any] = json.loads(content)
        return found

    async def _checked(self, url: str, digest: str) -> bytes:
        content, _ = await self._ask("GET", url, (200,), headers={"Accept": f"{_MANIFEST}, */*"})
        if digest_of(content) != digest:
            raise RegistryError(f"{url} answers with other bytes")
        return content

    async def _blob(self, place: _Place, content: bytes, media_type: str) -> dict[str, Any]:
        """Upload bytes, and return how a manifest names them."""
        digest = digest_of(content)
        _, headers = await self._ask("POST", f"{place.url}/blobs/uploads/", (202,))
        location = urljoin(f"{place.registry}/", headers["Location"])
        joint = "&" if "?" in location else "?"
        octets = {"Content-Type": "application/octet-stream"}
        await self._ask("PUT", f"{location}{joint}digest={digest}", (201,), data=content, headers=octets)
        return {"mediaType": media_type, "digest": digest, "size": len(content)}

    async def _ask(
        self,
        method: str,
        url: str,
        expected: tuple[int, ...],
        *,
        data: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[bytes, dict[str, str]]:
        timeout = aiohttp.ClientTimeout(total=_SECONDS)
        try:
            async with self._session.request(method, url, data=data, headers=headers, timeout=timeout) as answer:
                content = await answer.content.read(_LIMIT)
                while more := await answer.content.read(_LIMIT):
                    content += more
                if answer.status not in expected:
                    raise RegistryError(f"{method} {url}: {answer.status} {content[:200].decode(errors='replace')}")
                return content, dict(answer.headers)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise RegistryError(f"{method} {url}: {error or type(error).__name__}") from error
