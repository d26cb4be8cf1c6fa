"""Others who write to the same branch while kardinal does, each a process of its own with nothing but git.

One of them works in the bare repository as a server-side job would and moves the branch by compare-and-swap; the other
is a person with a clone, who pulls first whenever another commit was faster. Both say which commits they brought
in, and go on until they are told to stop.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.resilience.processes import Process, Shell
from tests.support.repository import GitRepository

__all__ = ["Committer", "job", "person"]

_JOB = """
cd "$repository" && export GIT_INDEX_FILE="$mine"
while [ ! -e "$stop" ]; do
    head=$(git rev-parse refs/heads/main) && git read-tree "$head" &&
    blob=$(echo "$number" | git hash-object -w --stdin) &&
    git update-index --add --cacheinfo "100644,$blob,others/$number" &&
    commit=$(git commit-tree -p "$head" -m "others $number" "$(git write-tree)") || exit 1
    if git update-ref refs/heads/main "$commit" "$head" 2>"$mine.refused"; then
        echo "$commit" && number=$((number + 1))
    fi
done
"""

_PERSON = """
git clone -q "$repository" "$mine" && cd "$mine" && mkdir others || exit 1
while [ ! -e "$stop" ]; do
    echo "$number" > "others/$number" && git add . && git commit -q -m "others $number" || exit 1
    until git push -q origin main 2>"$mine.refused"; do git pull -q --rebase origin main || exit 1; done
    git rev-parse HEAD && number=$((number + 1))
done
"""


@dataclass(frozen=True)
class Committer:
    """Another committer at work; see `job` and `person`."""

    process: Process
    stop_file: Path

    @property
    def commits(self) -> list[str]:
        """The commits they brought into the branch so far, oldest first."""
        return list(self.process.lines)

    async def stop(self) -> list[str]:
        """All they brought in, once they have stopped."""
        self.stop_file.touch()
        assert await self.process.ended() == 0, self.process.output
        return self.commits


async def job(shell: Shell, repository: GitRepository) -> Committer:
    """Return a job in the bare repository itself that commits as fast as it can."""
    return await _start(shell, repository, _JOB)


async def person(shell: Shell, repository: GitRepository) -> Committer:
    """Return a person with a clone who pushes as fast as they can."""
    return await _start(shell, repository, _PERSON)


async def _start(shell: Shell, repository: GitRepository, script: str) -> Committer:
    git = Path(shutil.which("git") or "")
    stop = shell.temporary / "stop"
    beginning = f"""
export PATH="{git.parent}:/usr/bin:/bin" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_AUTHOR_NAME=Others GIT_AUTHOR_EMAIL=others@example.com
export GIT_COMMITTER_NAME=Others GIT_COMMITTER_EMAIL=others@example.com
repository="$1" mine="$2" stop="$3" number=0
"""
    mine = shell.temporary / "others"
    process = await shell.start("/bin/sh", "-c", beginning + script, "others", repository.path, mine, stop)
    return Committer(process, stop)
