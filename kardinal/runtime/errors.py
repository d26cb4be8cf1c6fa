"""The errors of the runtime itself.

RuntimeFailure
├── TerminalError       raised by a reconciler: retrying will not help
├── SyncTimeout         a cache did not become complete; the message names its kind
├── UndeclaredInformer  a kind is read that was not declared before the start
└── GraceExceeded       a part of the program did not stop in time; the message names it
"""

from __future__ import annotations

from kardinal.objects.errors import KardinalError

__all__ = ["GraceExceeded", "RuntimeFailure", "SyncTimeout", "TerminalError", "UndeclaredInformer"]


class RuntimeFailure(KardinalError):
    """Any error of the runtime itself."""


class TerminalError(RuntimeFailure):
    """A reconcile failed and only a change of the object can help: the error is reported and not retried."""


class SyncTimeout(RuntimeFailure):
    """The objects of a kind could not be read in time."""


class UndeclaredInformer(RuntimeFailure):
    """An informer was not declared before the start, when permissions and memory of the program are decided."""


class GraceExceeded(RuntimeFailure):
    """The program took longer to stop than it may."""
