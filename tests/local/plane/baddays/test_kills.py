"""kill -9 under load, again and again, on one directory."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.local.plane.baddays.load import Promises, Writer, broken, follow
from tests.local.plane.baddays.processes import Nursery, nursery
from tests.local.plane.wire import CONFIG_MAPS, Http, config_map, session_for

WRITERS = 4


@pytest.fixture
async def planes() -> AsyncIterator[Nursery]:
    async with nursery() as program:
        yield program


modes = pytest.mark.parametrize("durable", [False, True], ids=["normal", "durable"])


@pytest.mark.timeout(900)
@modes
async def test_whatever_was_acknowledged_survives_every_kill(
    planes: Nursery, tmp_path: Path, durable: bool, soak: bool
) -> None:
    kills = 100 if soak else 5  # in each of two modes
    dice, promises = random.Random(kills), Promises()
    for _ in range(kills):
        async with planes.plane(tmp_path / "plane", durable=durable) as plane, session_for(plane.kubeconfig) as session:
            http = Http(session)
            promises.check(await http.get(CONFIG_MAPS))
            writers = [Writer(http, promises, name=f"w{number}") for number in range(WRITERS)]
            tasks = [asyncio.create_task(writer.write()) for writer in writers]
            tasks.append(asyncio.create_task(follow(http, promises)))
            await _answers(promises, tasks, number=dice.randrange(20, 100))
            await plane.kill()
            await broken(tasks)
    async with planes.plane(tmp_path / "plane", durable=durable) as plane, session_for(plane.kubeconfig) as session:
        promises.check(await Http(session).get(CONFIG_MAPS))


@modes
async def test_the_revision_does_not_go_back_when_the_last_object_was_deleted(
    planes: Nursery, tmp_path: Path, durable: bool
) -> None:
    async with planes.plane(tmp_path / "plane", durable=durable) as plane, session_for(plane.kubeconfig) as session:
        http = Http(session)
        created = await http.post(CONFIG_MAPS, config_map("last"))
        async with http.watch(CONFIG_MAPS, resourceVersion=created.revision) as watch:
            assert (await http.delete(f"{CONFIG_MAPS}/last")).status == 200
            _, deleted = await watch.next()
            await plane.kill()
    seen = deleted["metadata"]["resourceVersion"]
    async with planes.plane(tmp_path / "plane", durable=durable) as plane, session_for(plane.kubeconfig) as session:
        http = Http(session)
        assert int((await http.get(CONFIG_MAPS)).revision) >= int(seen)
        async with http.watch(CONFIG_MAPS, resourceVersion=seen) as watch:
            new = await http.post(CONFIG_MAPS, config_map("new"))
            assert await watch.names(1) == [("ADDED", "new")]
        assert int(new.revision) > int(seen)


async def _answers(promises: Promises, tasks: list[asyncio.Task[None]], *, number: int) -> None:
    """Until so many more writes were acknowledged."""
    enough = asyncio.create_task(promises.until(promises.answers + number))
    done, _ = await asyncio.wait({enough, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    enough.cancel()
    assert done == {enough}, done
