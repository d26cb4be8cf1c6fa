"""The errors of translation.

  PromotionError
  ├── InvalidSpec      the Pipeline, the Bundle or a gate cannot be executed; has all of their problems
  ├── SkipDenied       the Bundle skips an environment that a gate protects
  ├── GraphNameTaken   a Graph with the name of the Bundle's Graph exists and belongs to another owner
  ├── GraphChanged     the spec of the Bundle's Graph was changed by hand
  └── GraphRefused     the Graph that a person has written for the Bundle is not walked; has all of the reasons

Their author must fix them. They are not retried by themselves, and disappear as soon as the resources change. Errors of
the API server or of the network are not among them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kardinal.objects.errors import KardinalError

__all__ = ["GraphChanged", "GraphNameTaken", "GraphRefused", "InvalidSpec", "Problem", "PromotionError", "SkipDenied"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem that the author can fix: the resource (`Pipeline/app`), the path of the field, and the remedy."""

    subject: str
    field: str
    reason: str
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{self.subject} {self.field}: {self.message}{remedy}"


class PromotionError(KardinalError):
    """A Bundle cannot be promoted in its current state."""


class InvalidSpec(PromotionError):
    """All problems of the resources, in order of discovery."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in self.problems))


class SkipDenied(PromotionError):
    """A refused skip: `intent.skip` names an environment that `gate` protects, and no gate permits the skip."""

    def __init__(self, *, environment: str, gate: str, why: str) -> None:
        self.environment = environment
        self.gate = gate
        super().__init__(f"skipping {environment} is denied by gate {gate}: {why}")


class GraphNameTaken(PromotionError):
    """The Graph with the name of the Bundle does not belong to the Bundle. It may be terminating."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"there is a Graph {name} that does not belong to this Bundle: delete it, or name the Bundle anew"
        )


class GraphChanged(PromotionError):
    """The spec of the Bundle's Graph differs from the one that was recorded; `authored`: that a person has written."""

    def __init__(self, name: str, *, authored: bool = False) -> None:
        remedy = (
            "write it as it was when it was admitted, or create another Bundle"
            if authored
            else "delete it, and it is made again"
        )
        super().__init__(f"the spec of Graph {name} was changed by hand, and it is not walked: {remedy}")


class GraphRefused(PromotionError):
    """The Graph of a Bundle with `intent.graph: manual` is refused.

    `may_pass`: nothing of the Graph has to change, so that the question is asked again.
    """

    def __init__(self, name: str, reasons: Iterable[str], *, may_pass: bool) -> None:
        self.may_pass = may_pass
        super().__init__(f"Graph {name} is refused: {'; '.join(reasons)}")
