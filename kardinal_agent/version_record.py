"""Write the version of a program to the ConfigMap `kardinal-versions`, where `kardinal version` reads it.

The ConfigMap has one key per program. It is part of `deploy/`, so that a program needs only the right to change it.
"""

from __future__ import annotations

import asyncio
from importlib.metadata import version

import structlog

from kardinal.kube import Backoff, Client, Forbidden, KubeError, NotFound, PatchType
from kardinal.objects import CONFIG_MAP
from kardinal.promotion.api.names import VERSIONS

__all__ = ["VersionRecord"]

TRIES = 3
RETRY = Backoff(base=0.2, cap=5.0)

log = structlog.get_logger(__name__)


class VersionRecord:
    """A runnable of the manager that writes the version once; its failure does not stop the program."""

    def __init__(self, client: Client, *, program: str, namespace: str, field_manager: str) -> None:
        self._client = client
        self._program = program
        self._namespace = namespace
        self._field_manager = field_manager

    async def start(self) -> None:
        for failures in range(TRIES):
            try:
                await self._write()
            except (Forbidden, NotFound) as error:
                log.info("the version is not recorded; apply deploy/versions.yaml", reason=str(error))
                return
            except KubeError as error:
                log.info("the version could not be recorded", reason=str(error))
                # Real time, because the delay is for the network.
                await asyncio.sleep(RETRY.delay(failures))
            else:
                return

    async def stop(self) -> None:
        """Do nothing: the record names the version that ran last."""

    async def _write(self) -> None:
        body = {"data": {self._program: await asyncio.to_thread(version, "kardinal")}}
        await self._client.patch(
            CONFIG_MAP, VERSIONS, self._namespace, body, kind=PatchType.MERGE, field_manager=self._field_manager
        )
