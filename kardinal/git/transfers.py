"""Transfers: child processes that talk to a remote, within limits.

A transfer has a time limit, a time limit for the list of references, and a limit on disk space (`TransferLimits`). It
is a child process that can be killed (`kardinal.processes`); if it was killed, a `GitError` is raised.

When the program stops, a push gets time to end while everything else is killed: a host that loses its client in the
middle of a push may keep lock files, and then refuses every push.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kardinal.bounded import ForeignBytes, mebibytes
from kardinal.git.errors import CacheFull, MemoryExceeded, TransferStopped
from kardinal.processes.children import BLOCK, ChildLimits, Children, Ended
from kardinal.processes.errors import ChildDeadlineExceeded, ChildStopped, ShareExceeded
from kardinal.processes.memory_shares import MemoryPool

__all__ = ["PUSH_ENDS_WITHIN", "TransferLimits", "TransferReader", "Transfers"]

PUSH_ENDS_WITHIN = 60.0
"""The time in seconds that a push has to end. `kardinal.runtime.manager` gives helpers more time than this to stop."""
_LOOKS = 1.0
"""The interval in seconds at which the remaining disk space of a transfer is checked."""


@dataclass(frozen=True, slots=True)
class TransferLimits:
    """The limits on time and size of a transfer, in seconds and bytes.

    `total`: the time of a transfer. `advertisement`: the time until the remote has listed its references. `rate`:
    minimum bytes per second over https, in any `window`. `file`: the size of each file that is written, such as the
    pack of a clone. `ending`: the time for a push to end when the program stops.
    """

    total: float = 3600.0
    advertisement: float = 60.0
    window: int = 60
    rate: int = 1024
    file: int = 1 << 30
    ending: float = PUSH_ENDS_WITHIN


class TransferReader(Protocol):
    """A parser of the events of a transfer, line by line."""

    advertised: bool
    """Whether the remote has listed its references."""

    def feed(self, line: str) -> None: ...


class Transfers:
    """The transfers of one repository. `stop`, `wait` and `kill` act on its children, of which pushes may finish.

    `memory` may be shared with other repositories. `room`: returns the bytes that transfers other than pushes may still
    write.
    """

    def __init__(self, limits: TransferLimits, memory: MemoryPool, *, room: Callable[[], int]) -> None:
        self.limits = limits
        self._room = room
        self._children = Children(memory, ending=limits.ending)
        self.stop = self._children.stop
        self.wait = self._children.wait
        self.kill = self._children.kill

    def run(
        self,
        arguments: Sequence[str],
        *,
        url: str,
        environment: Mapping[str, str],
        files: Sequence[int],
        reader: TransferReader,
        pushes: bool = False,
    ) -> Ended:
        """Run a transfer to its end; raises `TransferStopped`, or a subclass of it, if it had to be killed.

        `pushes`: the transfer may move a reference of the remote.
        """
        room = None if pushes else _Room(url, self._room)
        size = self.limits.file if room is None else min(self.limits.file, room.left())
        advertisement = _Advertisement(url, self.limits.advertisement, reader)

        def look() -> float:
            until = advertisement.look()
            return until if room is None else min(until, room.look())

        try:
            ended = self._children.run(
                arguments,
                name=url,
                environment=environment,
                limits=ChildLimits(deadline=self.limits.total, file=size),
                files=files,
                feed=reader.feed,
                look=look,
                may_finish=pushes,
            )
        except ChildDeadlineExceeded:
            raise TransferStopped(
                f"the transfer with {url} took longer than {self.limits.total:.0f} s",
                remedy="Raise --git-transfer-max if the repository is that large",
            ) from None
        except ShareExceeded as exceeded:
            raise MemoryExceeded(exceeded.message, remedy=exceeded.remedy, transient=exceeded.transient) from exceeded
        except ChildStopped:
            raise TransferStopped(f"the transfer with {url} was stopped") from None
        if room is not None:
            room.left()
        return ended


class _Room:
    """The disk space for the data of one transfer."""

    def __init__(self, url: str, room: Callable[[], int]) -> None:
        self._url = url
        self._room = room
        self._looked = time.monotonic()

    def left(self) -> int:
        """Return the bytes that may still be written; raises `CacheFull` if less than two blocks are left."""
        left = self._room()
        self._looked = time.monotonic()
        if left < 2 * BLOCK:
            raise CacheFull(
                f"there is no room for what {self._url} sends beside the mirrors in use",
                remedy="Raise --git-cache-max-bytes: one namespace may use three quarters of it at once",
            )
        return left

    def look(self) -> float:
        """Check the space from time to time; return the seconds until the next check."""
        if time.monotonic() - self._looked >= _LOOKS:
            self.left()
        return _LOOKS


class _Advertisement:
    """The time limit, of `within` seconds from now, for a remote to list its references."""

    def __init__(self, url: str, within: float, reader: TransferReader) -> None:
        self._url = url
        self._within = within
        self._reader = reader
        # The remote machine lives in real time.
        self._until = time.monotonic() + within

    def look(self) -> float:
        """Return the seconds until the next check; raises `TransferStopped` when the time is over."""
        if self._reader.advertised:
            return self._within
        left = self._until - time.monotonic()
        if left <= 0:
            raise TransferStopped(f"{self._url} has not listed its branches in {self._within:.0f} s")
        return left


_LIMITS = TransferLimits()

FOREIGN = ForeignBytes(
    "transfers of Git repositories",
    of="Git host",
    size=f"{mebibytes(_LIMITS.file)} a pack, and what `--git-cache-max-bytes` leaves beside the mirrors in use, "
    "unfinished packs included; what a host says: the last 64 KiB",
    unpacked="as Git objects",
    structure="as Git objects",
    time=f"{_LIMITS.total / 3600:.0f} h (`--git-transfer-max`), {_LIMITS.advertisement:.0f} s to list the branches, "
    f"{_LIMITS.rate:,} bytes a second over {_LIMITS.window} s",
    held="on disk: mirrors in use of a namespace three quarters of `--git-cache-max-bytes`; 16 transfers at once, a "
    "quarter of them of a namespace",
    decoded="in a child; all of them have a quarter of the memory of the container",
    tests=(
        "attacks/test_git_cache.py::test_a_pack_is_stopped_where_the_share_of_its_namespace_ends",
        "attacks/test_git_cache.py::test_a_namespace_leaves_others_a_quarter",
        "attacks/test_git_cache.py::test_packs_that_never_become_whole_are_not_kept",
        "attacks/test_git_transfers.py::test_a_slow_host_takes_no_turns_from_other_namespaces",
    ),
)
