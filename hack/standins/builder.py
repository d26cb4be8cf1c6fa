"""Stand in for kpack: make an image of each Image's source, and push it to its registry.

    python -m hack.standins.builder --kubeconfig FILE --namespace NAMESPACE

`spec.tag` is where it is pushed, `spec.source.blob.url` the archive of the source, and `spec.base` the image below it
(defaults to none). Another archive is another build, and so is another digest of the base. Status is as kpack has it:
`latestImage` with its digest, `buildCounter`, and the condition Ready.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import aiohttp
import click

from hack.standins.archives import ArchiveError, fetch_archive, files_of
from hack.standins.images import Registry, RegistryError, layer_of
from hack.standins.program import POLL, options, run_standin, with_condition
from kardinal.objects import JsonObject
from kardinal.objects.image_reference import ImageReferenceError
from kardinal.runtime.process import run

__all__ = ["Builder"]

WORKSPACE = "workspace"
"""The directory of the source in an image."""


class Builder:
    """Builds images of files, which it runs nothing of."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def status_of(self, obj: JsonObject) -> tuple[JsonObject, timedelta | None]:
        """Return the status with the newest image, after building it if its source or its base is another."""
        spec = obj["spec"]
        status: JsonObject = obj.get("status") or {}
        base = spec.get("base")
        again = POLL if base else None
        try:
            source = str(spec["source"]["blob"]["url"])
            below = await self._registry.digest(base) if base else None
            built = {"tag": spec["tag"], "source": source, "base": below or ""}
            if status.get("built") == built:
                return with_condition(obj, "Ready", "True", "UpToDate"), again
            archive = await fetch_archive(source)
            files = [(f"{WORKSPACE}/{path}", executable, content) for path, executable, content in files_of(archive)]
            layer = await asyncio.to_thread(layer_of, files)
            image = await self._registry.push(spec["tag"], layer, base=base)
        except (ArchiveError, RegistryError, ImageReferenceError, KeyError, TypeError) as error:
            return with_condition(obj, "Ready", "False", "BuildFailed", f"{error}"), POLL
        counted = {"built": built, "latestImage": image, "buildCounter": status.get("buildCounter", 0) + 1}
        return {**with_condition(obj, "Ready", "True", "BuildSucceeded"), **counted}, again


async def _start() -> Builder:
    return Builder(Registry(aiohttp.ClientSession()))


@click.command()
@options
def main(*, kubeconfig: Path, namespace: str) -> None:
    """Stand in for kpack."""
    run(run_standin("builder", kubeconfig, namespace, _start))


if __name__ == "__main__":
    main()
