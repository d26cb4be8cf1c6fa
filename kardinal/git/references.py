"""Records in a local repository's own references, for data besides branches.

The provider `local` stores its pull requests in this way. Every operation is a compare-and-swap, or holds the lock of
the reference, so several processes may use one repository at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from kardinal.git.local import LocalBackend
from kardinal.git.objects import Staging
from kardinal.git.refs import HeldRef

__all__ = ["HeldRecord", "References"]


class HeldRecord:
    """A reference that no other process can move while it is held.

    `content` is that of its blob when the hold began.
    """

    def __init__(self, references: References, held: HeldRef, content: bytes | None) -> None:
        self._references = references
        self._held = held
        self.content = content

    async def write(self, content: bytes) -> None:
        """Store `content` and release the reference."""
        blob = await self._references.store(content)
        await self._references.backend.run(self._held.write, blob)


class References:
    """The references of one local repository."""

    def __init__(self, backend: LocalBackend) -> None:
        self.backend = backend
        self._queues: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def read(self, name: str) -> str | None:
        """Return the id of the object that a reference points to."""
        return await self.backend.run(lambda: self.backend.refs.read(name))

    async def below(self, prefix: str) -> dict[str, str]:
        """Return every reference below `prefix`, by name."""
        return await self.backend.run(lambda: self.backend.refs.list(prefix))

    async def contents(self, blobs: list[str]) -> dict[str, bytes]:
        """Return the content of several blobs, by id."""

        def read() -> dict[str, bytes]:
            staging = Staging(self.backend.open())
            return {blob: staging.read(blob) for blob in blobs}

        return await self.backend.run(read)

    async def store(self, content: bytes) -> str:
        """Write a blob with this content into the repository, and return its id."""

        def write() -> str:
            staging = Staging(self.backend.open())
            blob = staging.add_blob(content)
            staging.flush(blob)
            return blob

        return await self.backend.run(write)

    async def update(self, name: str, *, old: str | None, new: str | None) -> None:
        """Move a reference from `old` to `new`, where None means that it does not exist; raises `RefMoved`."""
        await self.backend.run(lambda: self.backend.refs.update(name, old=old, new=new))

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[HeldRecord]:
        """Hold a reference across several operations."""
        # Queue here first: threads that wait for the lock would leave its holder no thread to go on.
        queue = self._queues.setdefault(name, asyncio.Lock())
        async with queue:
            holding = await self.backend.run(lambda: self.backend.refs.hold(name))
            held = await self.backend.run(holding.__enter__)
            try:
                content = None
                if held.value is not None:
                    content = (await self.contents([held.value]))[held.value]
                yield HeldRecord(self, held, content)
            finally:
                await self.backend.run(holding.__exit__, None, None, None)
