"""Read what rendered branches record of a configuration, and what its commits change.

An edit does no reading of its own, so both are read before it. It says again what it needs, by the record that it then
meets, and fails where another promotion has changed the record meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kardinal.git.errors import BranchNotFound
from kardinal.git.repository import Repository
from kardinal.steps.branch_layout import BranchState, read_state
from kardinal.steps.config_history import FileChange
from kardinal.steps.config_replay import Replay

__all__ = ["read_record", "read_replays"]


async def read_record(repository: Repository, branch: str) -> BranchState:
    """Return the record of an environment's own branch as it is now; empty where there is none."""
    try:
        head = await repository.head(branch)
    except BranchNotFound:
        return BranchState()
    return await repository.examine(head.commit, read_state)


async def read_replays(
    repository: Repository, replays: Iterable[Replay]
) -> dict[Replay, Sequence[Sequence[FileChange]]]:
    """Return the files that commits of a configuration change; `repository` is the one that all of them are of."""
    places: dict[tuple[str, str], list[Replay]] = {}
    for replay in replays:
        places.setdefault((replay.source.branch, replay.source.directory), []).append(replay)
    found: dict[Replay, Sequence[Sequence[FileChange]]] = {}
    for (branch, directory), wanted in places.items():
        read = await repository.differences(branch, [replay.move for replay in wanted], directory)
        found |= {replay: (changes,) for replay, changes in zip(wanted, read, strict=True)}
    return found
