"""Check the health of an environment, and ask the repository the questions of the adapter about revisions.

An adapter asks whether revisions contain the commit. Known answers are given at once. The other questions are sent to
the repository after the verdict, and the adapter then judges again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from kardinal.objects.errors import KardinalError
from kardinal.objects.image_reference import ImageReference
from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.steps.declaration import PlannedStep
from kardinal.promotion.steps.facts import facts_of
from kardinal.promotion.steps.images import selected_images
from kardinal_agent.health import Applied, HealthChecks, PromotionFacts
from kardinal_agent.health.checks import CheckResult
from kardinal_agent.health.revisions import ASK_AGAIN
from kardinal_agent.remotes import Queued, Remote

__all__ = ["Proof"]

_ANSWER_SECONDS = 30.0
"""Seconds of real time for all questions to the repository in one run."""


@dataclass(frozen=True)
class Proof:
    """The health check of one PromotionStep."""

    step: PromotionStep
    """The PromotionStep with its current status."""
    bundle: Bundle
    sequence: Sequence[PlannedStep]
    health: HealthChecks
    remote: Callable[[], Awaitable[Remote]]

    async def look(self) -> CheckResult:
        """Return the current verdict, and the time of the next check."""
        questions = _Questions(self)
        finding = await self.health.check(self.step, self._promotion(questions))
        while await questions.answered():
            finding = await self.health.check(self.step, self._promotion(questions))
        return replace(finding, again=questions.again or finding.again)

    async def applied(self) -> Applied | str:
        """Return what the tool of the environment has applied, or why that is unknown."""
        return await self.health.applied(self.step, self._promotion(_Questions(self)))

    def _promotion(self, questions: _Questions) -> PromotionFacts:
        spec = self.step.spec
        return PromotionFacts(
            images=self._images(),
            charts=self.bundle.spec.artifacts.charts,
            commit=self.step.status.commit,
            repository=spec.git.url,
            branch=spec.target_branch,
            path=spec.path,
            contains=questions.contains,
        )

    def _images(self) -> Sequence[ImageReference]:
        """Return the images that the environment has to run; from mirror registries, if the edits found such names."""
        images = selected_images(self.bundle, self.step.spec.update.images)
        mirrors = facts_of(self.step.status, self.sequence).mirrors or {}
        return [
            replace(image.reference, repository=mirrors.get(image.reference.repository, image.reference.repository))
            for image in images
        ]


class _Questions:
    """Answers whether revisions contain the commit; collects unknown ones, to be asked after the verdict."""

    def __init__(self, proof: Proof) -> None:
        self._proof = proof
        self._url = proof.step.spec.git.url
        self._open: set[str] = set()
        self.again: timedelta | None = None
        """The time until unanswered questions are asked again; None without any."""

    def contains(self, revision: str) -> bool | None:
        commit = self._proof.step.status.commit
        revisions = self._proof.health.revisions
        if commit is None:
            return None
        answer = revisions.contains(self._url, revision, commit)
        if answer is None:
            self._open.add(revision)
        return answer

    async def answered(self) -> bool:
        """Ask the repository the questions that are due; return whether there is a new answer."""
        commit = self._proof.step.status.commit or ""
        revisions = self._proof.health.revisions
        asked = self._open
        self._open = set()
        due = [revision for revision in sorted(asked) if revisions.is_due(self._url, revision, commit)]
        self.again = ASK_AGAIN if asked else None
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                for revision in due:
                    repository = (await self._proof.remote()).repository
                    branch = self._proof.step.spec.target_branch
                    await revisions.ask(repository, self._url, branch=branch, revision=revision, commit=commit)
        except (KardinalError, Queued, TimeoutError):
            pass  # The verdict names the unknown revision, and the question is asked again later.
        return any(revisions.contains(self._url, revision, commit) is not None for revision in due)
