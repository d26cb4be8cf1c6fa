"""Look at an environment for what was promoted, and answer what that leads to ask of the repository.

An adapter asks whether revisions contain the commit. It is answered at once from what is known; the rest is asked of
the repository after the judgement, which is then made again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from kardinal.api import Bundle, PromotionStep
from kardinal.api.image import ImageReference
from kardinal.objects.errors import KardinalError
from kardinal.steps.declaration import PlannedStep
from kardinal.steps.facts import facts_of
from kardinal.steps.images import selected_images
from kardinal_agent.health import HealthChecks, Promotion
from kardinal_agent.health.checks import Finding
from kardinal_agent.health.revisions import ASK_AGAIN
from kardinal_agent.remotes import Queued, Remote

__all__ = ["Proof"]

_ANSWER_SECONDS = 30.0
"""Seconds of real time for questions to the repository in one run."""


@dataclass(frozen=True)
class Proof:
    """The proof that a PromotionStep asks for."""

    step: PromotionStep
    """With its status as it is now."""
    bundle: Bundle
    sequence: Sequence[PlannedStep]
    health: HealthChecks
    remote: Callable[[], Awaitable[Remote]]

    async def look(self) -> Finding:
        """Return the verdict of the moment, and when to look again even if nothing happens."""
        questions = _Questions(self)
        finding = await self.health.check(self.step, self._promotion(questions))
        while await questions.answered():
            finding = await self.health.check(self.step, self._promotion(questions))
        return replace(finding, again=questions.again or finding.again)

    def _promotion(self, questions: _Questions) -> Promotion:
        spec = self.step.spec
        return Promotion(
            images=self._images(),
            charts=self.bundle.spec.artifacts.charts,
            commit=self.step.status.commit,
            repository=spec.git.url,
            branch=spec.target_branch,
            path=spec.path,
            contains=questions.contains,
        )

    def _images(self) -> Sequence[ImageReference]:
        """Return the images that the environment has to run, from their mirrors where the edits found that it does."""
        images = selected_images(self.bundle, self.step.spec.update.images)
        mirrors = facts_of(self.step.status, self.sequence).mirrors or {}
        return [
            replace(image.reference, repository=mirrors.get(image.reference.repository, image.reference.repository))
            for image in images
        ]


class _Questions:
    """Answer whether revisions contain the commit; what is not known is asked of the repository after the judgement."""

    def __init__(self, proof: Proof) -> None:
        self._proof = proof
        self._url = proof.step.spec.git.url
        self._open: set[str] = set()
        self.again: timedelta | None = None
        """When to ask again what the repository could not answer."""

    def contains(self, revision: str) -> bool | None:
        commit, revisions = self._proof.step.status.commit, self._proof.health.revisions
        if commit is None:
            return None
        answer = revisions.contains(self._url, revision, commit)
        if answer is None:
            self._open.add(revision)
        return answer

    async def answered(self) -> bool:
        """Ask what is open and due; return whether there is an answer that was not there before."""
        commit, revisions = self._proof.step.status.commit or "", self._proof.health.revisions
        asked, self._open = self._open, set()
        due = [revision for revision in sorted(asked) if revisions.is_due(self._url, revision, commit)]
        self.again = ASK_AGAIN if asked else None
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                for revision in due:
                    repository = (await self._proof.remote()).repository
                    branch = self._proof.step.spec.target_branch
                    await revisions.ask(repository, self._url, branch=branch, revision=revision, commit=commit)
        except (KardinalError, Queued, TimeoutError):
            pass  # The verdict says what is not known, and the question is asked again.
        return any(revisions.contains(self._url, revision, commit) is not None for revision in due)
