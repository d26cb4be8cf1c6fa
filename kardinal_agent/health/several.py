"""Judge several workloads together: each with a promoted image must run its promoted version, and each image is run."""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.objects import CRON_JOB, JOB, JsonObject
from kardinal.objects.image_reference import ImageReference
from kardinal_agent.health.subject import Subject
from kardinal_agent.health.verdict import Verdict
from kardinal_agent.health.workloads import combined, judge_workload, runs_repository_of

__all__ = ["judge_workloads"]


def judge_workloads(
    subject: Subject, found: Sequence[JsonObject | None], images: Sequence[ImageReference], *, delegated: bool = False
) -> Verdict | None:
    """Return the verdict on the workloads that `subject` has applied; None when they prove the promotion.

    `found` has None for each workload that does not exist. Without images, every long-running workload must be healthy.
    `delegated`: a delivery controller runs the promoted images, and has a verdict of its own.
    """
    workloads = [each for each in found if each is not None]
    if len(workloads) < len(found):
        return subject.waits("a workload that it applied does not exist")
    for image in images:
        if not delegated and not any(runs_repository_of(each, image) for each in workloads):
            return subject.waits(f"no workload that it applied runs {image.repository}")
    judged = [verdict for each in workloads if (verdict := _judged(each, images)) is not None]
    if not judged or (worst := combined(judged)).state == "healthy":
        return None
    says = worst.details or worst.message
    if worst.state == "failed":
        return subject.failed(worst.reason, "a workload that it applied has failed", says=says)
    return subject.waits("a workload that it applied is not there yet", says=says, negative=worst.negative)


def _judged(workload: JsonObject, images: Sequence[ImageReference]) -> Verdict | None:
    carried = [image for image in images if runs_repository_of(workload, image)]
    if images and not carried:
        return None
    if not images and workload["kind"] in (JOB.kind, CRON_JOB.kind):
        return None
    return judge_workload(workload, carried)
