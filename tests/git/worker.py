"""A process of its own that promotes into a local repository, the way a second agent would."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from kardinal.clock import SystemClock
from kardinal.git import GitRunner, Repositories
from kardinal.tree.commit_message import CommitMessage
from kardinal.tree.edit import Tree


async def promote(path: str, name: str, count: int) -> None:
    """Land `count` edits, several at a time, each on a file of its own."""
    runner = GitRunner()
    with tempfile.TemporaryDirectory() as cache:
        repositories = Repositories(Path(cache), runner=runner, clock=SystemClock(), allow_local=True)
        repository = repositories.open(path)

        async def land(number: int) -> None:
            def edit(tree: Tree) -> dict[str, bytes]:
                return {f"{name}/{number}.yaml": b"promoted\n"}

            await repository.land(
                "main", edit, CommitMessage(f"{name} {number}", "", {"Kardinal-Step": f"{name}-{number}"})
            )

        for start in range(0, count, 3):
            await asyncio.gather(*(land(number) for number in range(start, min(start + 3, count))))
        await repositories.close()
    runner.close()


if __name__ == "__main__":
    asyncio.run(promote(sys.argv[1], sys.argv[2], int(sys.argv[3])))
