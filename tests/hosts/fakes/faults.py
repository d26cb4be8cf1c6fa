"""The bad days of a fake host: what it answers instead, or does and does not say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Fault"]

Kind = Literal["answer", "reset", "lost", "nothing"]


@dataclass
class Fault:
    """A fault that happens to the next requests that match `method` and `path`, a pattern that is searched for.

    `answer`: `status`, `headers` and `body` instead of the host's own. `reset`: the connection ends and nothing was
    done. `lost`: it was done, and the connection ends before the answer. `nothing`: a success is answered, and nothing
    was done.
    """

    method: str
    path: str
    kind: Kind = "answer"
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    times: int = 1
    met: int = 0

    def meets(self, method: str, path: str) -> bool:
        """Return whether this request is one of those, and count it."""
        if self.met >= self.times or self.method != method or not re.search(self.path, path):
            return False
        self.met += 1
        return True
