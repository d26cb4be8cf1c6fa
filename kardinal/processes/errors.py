"""The errors of a child that was killed.

    ChildStopped                the child was killed, or not started, because its owner closes
    ├── ChildDeadlineExceeded   the child ran longer than its deadline
    ├── ShareExceeded           the child, or all children of its kind together, used too much memory
    ├── AnswerTooLong           its answer has more bytes than allowed (`workers`)
    └── WorkerEnded             the child ended by itself, before it has answered

An owner with a more specific message, for example with the option that raises a deadline, catches these errors and
raises its own.
"""

from __future__ import annotations

from kardinal.objects.errors import KardinalError

__all__ = ["ChildDeadlineExceeded", "ChildStopped", "ShareExceeded", "WorkerEnded"]


class ChildStopped(KardinalError):
    """A child was killed before its end: its files may be incomplete."""

    transient = True

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} was stopped")


class ChildDeadlineExceeded(ChildStopped):
    """A child was killed because it ran longer than its deadline."""

    def __init__(self, name: str, deadline: float) -> None:
        KardinalError.__init__(self, f"{name} took longer than {deadline:.0f} s")


class ShareExceeded(ChildStopped):
    """A child was killed because it used too much memory.

    It would need as much in another attempt, unless the limit was exceeded only together with other children.
    """

    def __init__(self, name: str, limit: int, *, beside_others: bool = False) -> None:
        KardinalError.__init__(
            self,
            f"{name} needs more than the {limit >> 20} MiB of memory that there are for it",
            remedy="Raise the memory limit of the container",
            transient=beside_others,
        )


class WorkerEnded(ChildStopped):
    """A worker ended before it has answered. `code`: its exit code, negative for a signal. `text`: its last words."""

    def __init__(self, name: str, code: int, text: str) -> None:
        KardinalError.__init__(self, f"{name} ended with {code}", transient=False)
        self.code = code
        self.text = text
