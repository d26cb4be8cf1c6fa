"""Two servers side by side: play, compare, count."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from tests.local.contract.fuzz.histogram import Histogram
from tests.local.contract.fuzz.outcomes import HUNG_UP, Outcome
from tests.local.contract.fuzz.player import play
from tests.local.contract.fuzz.schemas import definitions
from tests.local.contract.fuzz.sequences import sequence
from tests.local.contract.fuzz.server import Server
from tests.local.contract.fuzz.steps import JsonObject, Sequence

__all__ = ["DEFINITIONS", "Difference", "Duel", "Report", "duel"]

DEFINITIONS = 10
_AT_ONCE = 4


@dataclass(frozen=True)
class Difference:
    """A sequence up to the first request that two servers answered differently."""

    sequence: Sequence
    left: list[Outcome]
    right: list[Outcome]

    @property
    def names(self) -> list[str]:
        return self.left[-1].differences(self.right[-1])

    def shown(self) -> str:
        left, right = self.left[-1], self.right[-1]
        lines = [f"{self.sequence.kind} {self.sequence.name}"]
        lines += [f"  {step.encoded()}" for step in self.sequence.steps[: len(self.left)]]
        lines += [f"  {line}" for line in left.apart(right)]
        lines += [f"  {side}: {outcome.words}" for side, outcome in (("left", left), ("right", right)) if outcome.words]
        return "\n".join(lines)


@dataclass
class Report:
    """What a run found."""

    histogram: Histogram = field(default_factory=Histogram)
    differences: list[Difference] = field(default_factory=list)


class Duel:
    """Two prepared servers."""

    def __init__(self, left: Server, right: Server, *, seed: int, namespace: str, crds: list[JsonObject]) -> None:
        self._left = left
        self._right = right
        self._seed = seed
        self._namespace = namespace
        self._crds = crds

    def sequence(self, index: int) -> Sequence:
        return sequence(self._seed, index, definitions=self._crds, namespace=self._namespace)

    async def play(self, played: Sequence) -> tuple[Difference | None, list[Outcome]]:
        """Ask both; the first difference, and all that the right server answered."""
        left, right = await asyncio.gather(play(self._left, played), play(self._right, played))
        for index, (one, other) in enumerate(zip(left, right, strict=True)):
            if other.code == HUNG_UP:
                # Nothing can be equal to no answer, and nobody knows what was written.
                return None, right[: index + 1]
            if one.differences(other):
                return Difference(played, left[: index + 1], right[: index + 1]), right
        return None, right

    async def run(self, indices: range, *, patience: int = 1) -> Report:
        """Play the sequences; stop when `patience` of them differ."""
        report = Report()
        waiting = iter(indices)

        async def work() -> None:
            for index in waiting:
                if len(report.differences) >= patience:
                    return
                played = self.sequence(index)
                difference, outcomes = await self.play(played)
                report.histogram.add(played, outcomes)
                if difference is not None:
                    report.differences.append(difference)

        await asyncio.gather(*(work() for _ in range(_AT_ONCE)))
        return report

    async def shrink(self, difference: Difference) -> Difference:
        """The same difference from as few requests as can be found by leaving out one after the other."""
        steps, wanted, round_ = list(difference.sequence.steps[: len(difference.left)]), difference.names, 0
        position = 0
        while position < len(steps) - 1:
            round_ += 1
            fewer = steps[:position] + steps[position + 1 :]
            renamed = _renamed(replace(difference.sequence, steps=tuple(fewer)), f"{difference.sequence.name}-{round_}")
            found, _ = await self.play(renamed)
            if found is not None and found.names == wanted and len(found.left) == len(fewer):
                steps, difference = fewer, found
            else:
                position += 1
        return difference


@asynccontextmanager
async def duel(left: Server, right: Server, *, seed: int) -> AsyncIterator[Duel]:
    """Both servers with the definitions of a seed, under names of this run, which go again."""
    run = secrets.token_hex(3)
    crds = definitions(seed, number=DEFINITIONS, group=f"fuzz{run}.kardinal.io")
    namespace = f"fuzz-{run}"
    await asyncio.gather(*(server.prepare(crds, namespace=namespace) for server in (left, right)))
    try:
        yield Duel(left, right, seed=seed, namespace=namespace, crds=crds)
    finally:
        await asyncio.gather(*(server.tidy(crds, namespace=namespace) for server in (left, right)))


def _renamed(played: Sequence, name: str) -> Sequence:
    def rename(body: object) -> object:
        if isinstance(body, dict) and body.get("metadata", {}).get("name") == played.name:
            return {**body, "metadata": {**body["metadata"], "name": name}}
        return body

    steps = tuple(replace(step, body=rename(step.body)) for step in played.steps)
    base = {**played.base, "metadata": {**played.base["metadata"], "name": name}}
    return replace(played, name=name, base=base, steps=steps)
