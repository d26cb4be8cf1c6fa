"""`health-check`: look whether the environment proves what was promoted, until its deadline.

The deadline stands in the status since the step was entered, so that a restart neither renews nor forgets it. Healthy
beats late: what is proven at the moment the time is over is proven.
"""

from __future__ import annotations

from datetime import timedelta

from kardinal.api import PromotionStep, format_duration
from kardinal.steps.commit_plan import images_of
from kardinal_agent.errors import StepFailed
from kardinal_agent.steps.base import Done, Outcome, StepContext, Waiting

__all__ = ["DEFAULT_TIMEOUT", "HealthCheck", "timeout_of"]

DEFAULT_TIMEOUT = timedelta(minutes=10)


def timeout_of(step: PromotionStep) -> timedelta:
    """How long an environment has to prove what it runs."""
    return step.spec.health.timeout or DEFAULT_TIMEOUT


class HealthCheck:
    async def run(self, context: StepContext) -> Outcome:
        images = [image.reference for image in images_of(context.bundle)]
        verdict = context.health.check(context.step, images)
        deadline = context.status.health_deadline
        if verdict.healthy:
            return Done(verdict.message)
        if deadline is not None and context.now >= deadline:
            timeout = format_duration(timeout_of(context.step))
            raise StepFailed("HealthTimeout", f"not healthy within {timeout}: {verdict.message}")
        return Waiting(verdict.message, until=deadline)
