"""Wait for changes of the objects that a command shows, by watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping

from kardinal.cli.session import Session
from kardinal.kube import KubeError
from kardinal.objects import ResourceType

__all__ = ["changes"]

RETRY_SECONDS = 1.0
"""The pause in seconds before a failed watch is opened again."""


async def changes(
    session: Session, watched: Mapping[ResourceType, str | None], *, tick: float | None = None
) -> AsyncGenerator[bool]:
    """Yield True after objects have changed, once for several changes; False after each `tick` seconds without one.

    The first True comes when the watches are open. `watched` has the kinds with their field selectors, None for all
    objects, for example `{BUNDLE: None, EVENT: "regarding.kind=PromotionStep"}`. `tick` defaults to no limit.
    """
    changed = asyncio.Event()

    async def follow(resource: ResourceType, fields: str | None) -> None:
        while True:
            try:
                revision = (await session.client.list(resource, session.namespace, limit=1)).resource_version
                async with session.client.watch(
                    resource, session.namespace, fields=fields, resource_version=revision
                ) as events:
                    changed.set()
                    async for _ in events:
                        changed.set()
            except KubeError:
                await asyncio.sleep(RETRY_SECONDS)

    tasks = [asyncio.create_task(follow(resource, fields)) for resource, fields in watched.items()]
    for task in tasks:
        task.add_done_callback(lambda _: changed.set())
    try:
        while True:
            try:
                async with asyncio.timeout(tick):
                    await changed.wait()
            except TimeoutError:
                yield False
                continue
            changed.clear()
            for task in tasks:
                if task.done():
                    task.result()
            yield True
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
