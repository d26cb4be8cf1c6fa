"""A push held in the middle of its transaction at the host, by a hook of a bare repository."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["HeldPush"]

_HOOK = """\
#!/bin/sh
[ "$1" = prepared ] || exit 0
echo $PPID > {held}
until [ -e {go} ]; do sleep 0.01; done
"""


class HeldPush:
    """A hook that holds a push where Git has locked the references, until it is released."""

    def __init__(self, directory: Path) -> None:
        self.locks = directory / "refs" / "heads" / "main.lock", directory / "HEAD.lock"
        self._held = directory / "held"
        self._go = directory / "go"
        self._hook = directory / "hooks" / "reference-transaction"
        self._hook.parent.mkdir(exist_ok=True)
        self.again()

    def again(self) -> None:
        """Hold the next push."""
        self._held.unlink(missing_ok=True)
        self._hook.write_text(_HOOK.format(held=self._held, go=self._go))
        self._hook.chmod(0o755)

    def reached(self) -> bool:
        """Return whether a push is held."""
        return self._held.exists() and self._held.read_text().endswith("\n")

    def killed(self) -> bool:
        """Return whether the Git that was held is gone."""
        try:
            os.kill(int(self._held.read_text()), 0)
        except ProcessLookupError:
            return True
        return False

    def forget(self) -> None:
        """Hold no further push."""
        self._hook.unlink()

    def release(self) -> None:
        """Let the push go on."""
        self.forget()
        self._go.touch()
