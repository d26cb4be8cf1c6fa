"""Find the pull request of a promotion, and make its text; shared by the steps that open, await and withdraw it.

kardinal's part of the body names the Bundle by uid, and has digests of the written text and title. By the uid, a
process that died finds its own pull request again, independent of the clock of the host. By the digests, the text is
written again only when kardinal's own text changes, and not because a host or a person has reformatted it; the title is
written only while it is the one that kardinal wrote (`text_marks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kardinal.git import Repository
from kardinal.objects.text_limits import size
from kardinal.promotion.api.promotion_step import PromotionStepStatus
from kardinal.promotion.policy.soak import healthy_times
from kardinal.promotion.steps.pull_request_text import ROOM, PullRequestFacts, body, title
from kardinal.scm import PullRequest, PullRequests
from kardinal_agent.hosts.statuses import EnvironmentSubject, statuses_of
from kardinal_agent.remotes import Remote
from kardinal_agent.steps.base import StepContext
from kardinal_agent.steps.text_marks import WITHDRAWN, marked, named_bundles, own_part, text_digest

__all__ = ["AGENT", "OUTCOME", "Text", "is_of_bundle", "is_own", "own_pull_request", "tell_gates", "text_of"]

AGENT = "kardinal"
"""The name of the agent, with which it merges pull requests without review, and closes superseded ones."""

OUTCOME = "outcome"
"""The marker of the comment that says what has become of the promotion."""

_LEAST_ROOM = 500
"""The fewest bytes for kardinal's text; with less room, none is written."""


@dataclass(frozen=True, slots=True)
class Text:
    """The text of the pull request of a Bundle: its title, and the part of its body that is kardinal's."""

    uid: str
    proposal: PullRequestFacts

    @property
    def title(self) -> str:
        return title(self.proposal)

    @property
    def body(self) -> str:
        """Return the body of a new pull request."""
        return f"{self._marked(ROOM)}\n"

    def changes_of(self, found: PullRequest) -> dict[str, str]:
        """Return the fields (title, body) to write; empty if the pull request has them already.

        Text of people stays: a title that kardinal did not write, and the body around kardinal's part. A body without
        that part is left alone, and so is a body without enough room for it.
        """
        part = own_part(found.body, uid=self.uid)
        if part is None or part.digest == self._digest:
            return {}
        room = ROOM - size(part.before) - size(part.after)
        if room < _LEAST_ROOM:
            return {}
        changes = {"body": f"{part.before}{self._marked(room)}{part.after}"}
        return {**changes, "title": self.title} if part.has_title(found.title) else changes

    @property
    def _digest(self) -> str:
        return text_digest(self.title, body(self.proposal))

    def _marked(self, room: int) -> str:
        text = body(self.proposal, room=room)
        return marked(text, uid=self.uid, digest=self._digest, title=self.title)


def is_of_bundle(pull_request: PullRequest, uid: str) -> bool:
    """Return whether the mark of a pull request names the Bundle.

    True without a mark, because people may have removed it, and with that of a withdrawal, which may have been
    interrupted.
    """
    named = named_bundles(pull_request.body) - {WITHDRAWN}
    return not named or uid in named


def is_own(found: PullRequest, *, uid: str, status: PromotionStepStatus) -> bool:
    """Return whether a pull request of the promotion's branch is its own, be it open, merged or closed.

    An older pull request belongs to an earlier Bundle of the same name. People can write any mark, so an ended pull
    request is ours only if its head is the pushed commit, or if it was opened since the promotion began.
    """
    named = named_bundles(found.body)
    if named and uid not in named:
        return False
    if named and (found.state == "open" or (status.commit is not None and found.head_commit == status.commit)):
        return True
    return status.started_at is not None and found.created_at >= status.started_at


async def own_pull_request(context: StepContext, pull_requests: PullRequests) -> PullRequest | None:
    """Return the newest pull request of the branch if it is this promotion's own.

    The process may have died between opening it and noting its number, and a person may have merged or closed it
    meanwhile.
    """
    found = await pull_requests.find(context.branch, base=context.target)
    own = found is not None and is_own(found, uid=context.bundle.metadata.uid, status=context.status)
    return found if own else None


async def text_of(context: StepContext, repository: Repository, diff: str | None) -> Text:
    """Return the text of a promotion's pull request; `diff` is its difference as text, None for none.

    Ages are computed at the beginning of the promotion, so that the text does not change with time alone.
    """
    spec = context.step.spec
    head = await repository.head(context.target)
    proposal = PullRequestFacts(
        pipeline=spec.pipeline,
        environment=spec.environment,
        bundle=context.bundle,
        gates=context.gates(),
        metrics=context.metrics(),
        changes=await repository.examine(head.commit, context.image_changes),
        diff=diff,
        follows=bool(spec.upstream_states),
        merged_by_agent=context.merges_itself,
        now=context.status.started_at or context.now,
        soaks=healthy_times(context.bundle),
    )
    return Text(context.bundle.metadata.uid, proposal)


async def tell_gates(context: StepContext, remote: Remote, commit: str, reasons: Sequence[str]) -> None:
    """Write the statuses of the promotion's environment to a commit: `pending` with `reasons`, or `success` without."""
    subject = EnvironmentSubject(context.step.spec.pipeline, context.step.spec.environment)
    for status in statuses_of({subject: reasons}):
        await context.host_memory.status(remote.repository.url, remote.proposals, commit, status)
