"""The errors of translation.

```
PromotionError
├── InvalidSpec      the Pipeline, the Bundle or a gate says something that cannot be done; every problem of it
├── SkipDenied       the Bundle leaves out an environment that a gate protects
├── GraphNameTaken   a Graph that is not ours stands where the Bundle's belongs
└── GraphChanged     the spec of the Bundle's Graph was changed by hand
```

They are the author's to fix, never retried by themselves, and left as soon as the resources change. What the API server
or the network does wrong is none of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kardinal.objects.errors import KardinalError

__all__ = ["GraphChanged", "GraphNameTaken", "InvalidSpec", "Problem", "PromotionError", "SkipDenied"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing its author can fix: in which resource (`Pipeline/app`), at which field, and how."""

    subject: str
    field: str
    reason: str
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{self.subject} {self.field}: {self.message}{remedy}"


class PromotionError(KardinalError):
    """A Bundle cannot be promoted as it stands."""


class InvalidSpec(PromotionError):
    """Everything that was found wrong, the first problem first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in self.problems))


class SkipDenied(PromotionError):
    """`intent.skip` names an environment that `gate` protects, and nothing permits it."""

    def __init__(self, *, environment: str, gate: str, why: str) -> None:
        self.environment = environment
        self.gate = gate
        super().__init__(f"skipping {environment} is denied by gate {gate}: {why}")


class GraphNameTaken(PromotionError):
    """A Graph of the Bundle's name does not belong to the Bundle; it may be terminating."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"there is a Graph {name} that does not belong to this Bundle: delete it, or name the Bundle anew"
        )


class GraphChanged(PromotionError):
    """The spec of the Bundle's Graph is not what the controller wrote."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the spec of Graph {name} was changed by hand, and it is not walked: delete it, and it is made again"
        )
