"""A fetch that a push of ours overtakes: both move the same branch of the mirror."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from pathlib import Path

from kardinal.git import Repository
from tests.git.conftest import Git, manifests, message, setting, until
from tests.support.smart_server import Exchange, SmartServer


@dataclass
class Held:
    """Lets Git answer, and keeps the answers of the first push and of the first fetch of objects back."""

    push: threading.Event = field(default_factory=threading.Event)
    fetch: threading.Event = field(default_factory=threading.Event)
    seen: list[str] = field(default_factory=list)

    def __call__(self, exchange: Exchange, path: str) -> bool:
        service = path.rpartition("/")[2]
        if exchange.command != "POST" or not exchange.headers.get("Authorization") or service in self.seen:
            return False
        if service == "git-upload-pack" and b"want " not in exchange.body:
            return False
        answer = exchange.ask_git()
        self.seen.append(service)
        released = self.push if service == "git-receive-pack" else self.fetch
        assert released.wait(20)
        exchange.send(answer)
        return True


async def test_a_mirror_is_kept_where_a_push_overtakes_a_fetch(
    remote: Repository, server: SmartServer, bare: Git, tmp_path: Path
) -> None:
    await remote.head("main")
    (mirror,) = (tmp_path / "cache").glob("*.git")
    (mirror / "mark").touch()
    server.trouble = held = Held()
    landing = asyncio.create_task(remote.land("main", setting("dev", b"v2\n"), message("dev")))
    await until(lambda: "git-receive-pack" in held.seen)
    theirs = bare.commit({**manifests(), "README.md": "other\n"}, parent="refs/heads/main^0")
    looking = asyncio.create_task(remote.head("main"))
    await until(lambda: "git-upload-pack" in held.seen)
    held.push.set()
    landed = await landing
    held.fetch.set()
    assert (await looking).commit == theirs
    assert bare("rev-parse", "main^") == landed.commit
    assert (mirror / "mark").exists(), "the mirror was made anew"


async def test_a_mirror_is_made_anew_where_a_process_that_was_killed_has_left_a_lock(
    remote: Repository, bare: Git, tmp_path: Path
) -> None:
    before = await remote.head("main")
    (mirror,) = (tmp_path / "cache").glob("*.git")
    (mirror / "refs" / "heads" / "main.lock").touch()
    theirs = bare.commit({**manifests(), "README.md": "other\n"}, parent=before.commit)
    assert (await remote.head("main")).commit == theirs
    assert not (mirror / "refs" / "heads" / "main.lock").exists()
