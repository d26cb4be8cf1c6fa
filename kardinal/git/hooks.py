"""The hooks of a repository on this machine, which do not run when its branches are moved without a push.

An owner who protects a branch by a hook, or starts something with one, relies on it. A change past it is worse than
none, and to run it is to run code of the repository with the rights of the program that promotes.
"""

from __future__ import annotations

import os
from pathlib import Path

import pygit2

from kardinal.git.errors import PushRejected
from kardinal.git.runner import off_loop

__all__ = ["refuse_hooks"]

_OF_A_PUSH = ("pre-receive", "update", "proc-receive", "post-receive", "post-update", "reference-transaction")
_DIRECTORY = "core.hooksPath"


@off_loop
def refuse_hooks(repository: pygit2.Repository, *, path: str) -> None:
    """Raise `PushRejected` where a push to a repository would run hooks; `path` is what people know it by."""
    directory = _hooks_directory(repository)
    there = [name for name in _OF_A_PUSH if _runs(directory / name)]
    if there:
        raise PushRejected(
            f"{path} has hooks that a promotion would bypass: {', '.join(there)} in {directory}",
            remedy="Promote to it through a Git server (https or ssh), remove the hooks, or start with "
            "--allow-bypassing-hooks if nothing relies on them",
        )


def _hooks_directory(repository: pygit2.Repository) -> Path:
    """Return where Git looks for hooks; a relative path is one from the Git directory."""
    own = Path(repository.path)
    try:
        chosen = repository.config[_DIRECTORY]
    except KeyError:
        chosen = None
    return own / Path(chosen).expanduser() if chosen else own / "hooks"


def _runs(hook: Path) -> bool:
    return hook.is_file() and os.access(hook, os.X_OK)
