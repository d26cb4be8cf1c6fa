"""The errors of the runtime itself.

RuntimeFailure
├── TerminalError       raised by a reconciler: trying again will not help
├── SyncTimeout         a cache did not become complete; names its kind
├── UndeclaredInformer  a kind is read that was not declared before the start
└── GraceExceeded       something did not stop in time; names it
"""

from __future__ import annotations

from kardinal.objects.errors import KardinalError

__all__ = ["GraceExceeded", "RuntimeFailure", "SyncTimeout", "TerminalError", "UndeclaredInformer"]


class RuntimeFailure(KardinalError):
    """Anything the runtime itself reports."""


class TerminalError(RuntimeFailure):
    """A reconcile failed in a way that only a change of the object can mend: it is reported and not retried."""


class SyncTimeout(RuntimeFailure):
    """The state of a kind could not be read in time."""


class UndeclaredInformer(RuntimeFailure):
    """Caches are declared before the start, so that permissions and memory are known."""


class GraceExceeded(RuntimeFailure):
    """Stopping took longer than it may."""
