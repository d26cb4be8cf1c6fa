"""Shared by the steps that open, await and withdraw a pull request: which one is ours, and what it says.

The part of the body that is ours says whose pull request it is, and has digests of what was written. By the first a
process that died finds its own, whatever the host's clock says. By the digests the text is written again only when
kardinal has something else to say, and not because a host or a person has changed its form; and the title only while it
is the one that kardinal wrote (`text_marks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kardinal.git import Repository
from kardinal.policy.soak import healthy_times
from kardinal.scm import PullRequest, PullRequests
from kardinal.steps.pull_request_text import ROOM, Proposal, body, title
from kardinal.steps.text_limits import size
from kardinal_agent.hosts.statuses import Subject, statuses_of
from kardinal_agent.remotes import Remote
from kardinal_agent.steps.base import StepContext
from kardinal_agent.steps.text_marks import marked, named_bundles, own_part, text_digest

__all__ = ["AGENT", "Text", "is_of_bundle", "own_pull_request", "tell_gates", "text_of"]

AGENT = "kardinal"
"""The name under which pull requests without review are merged, and superseded ones closed."""

_LEAST_ROOM = 500
"""Bytes below which a text of kardinal's is not worth writing."""


@dataclass(frozen=True, slots=True)
class Text:
    """The text of the pull request of a Bundle: its title, and the part of its body that is kardinal's."""

    uid: str
    proposal: Proposal

    @property
    def title(self) -> str:
        return title(self.proposal)

    @property
    def body(self) -> str:
        """Return the body of a new pull request."""
        return f"{self._marked(ROOM)}\n"

    def changes_of(self, found: PullRequest) -> dict[str, str]:
        """Return the title and the body to write; empty where the pull request says it already.

        What people have written stays: a title that is not the one that kardinal wrote, and everything around the part
        of the body that is kardinal's. A body without that part is theirs altogether, and so is one that they have left
        no room in.
        """
        part = own_part(found.body, uid=self.uid, title=found.title)
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
    """Return whether the mark of a pull request names the Bundle; true without one, which people may have removed."""
    named = named_bundles(pull_request.body)
    return not named or uid in named


async def own_pull_request(context: StepContext, pull_requests: PullRequests) -> PullRequest | None:
    """Return the newest pull request of the branch if it is this promotion's own, whatever has become of it.

    The process may have died between opening it and noting its number, and a person may have merged or closed it
    meanwhile. An older one belongs to an earlier Bundle of the name. People can write any mark: so one that has ended
    is ours only with the commit that was pushed, or where it was opened since the promotion began.
    """
    found = await pull_requests.find(context.branch, base=context.target)
    if found is None:
        return None
    uid, started = context.bundle.metadata.uid, context.status.started_at
    named = named_bundles(found.body)
    if named and uid not in named:
        return None
    proposed = context.status.commit
    if named and (found.state == "open" or (proposed is not None and found.head_commit == proposed)):
        return found
    return found if started is not None and found.created_at >= started else None


async def text_of(context: StepContext, repository: Repository, diff: str | None) -> Text:
    """Return what the pull request of a promotion says; `diff` is what it changes.

    Ages are counted to the beginning of the promotion, so that time alone does not change the text.
    """
    spec, head = context.step.spec, await repository.head(context.target)
    proposal = Proposal(
        pipeline=spec.pipeline,
        environment=spec.environment,
        bundle=context.bundle,
        gates=context.gates(),
        changes=await repository.examine(head.commit, context.image_changes),
        diff=diff,
        follows=bool(spec.upstream_states),
        merged_by_agent=context.merges_itself,
        now=context.status.started_at or context.now,
        soaks=healthy_times(context.bundle),
    )
    return Text(context.bundle.metadata.uid, proposal)


async def tell_gates(context: StepContext, remote: Remote, commit: str, reasons: Sequence[str]) -> None:
    """Have a commit carry the statuses of the promotion's environment: `pending` with `reasons`, else success."""
    subject = Subject(context.step.spec.pipeline, context.step.spec.environment)
    for status in statuses_of({subject: reasons}):
        await context.host_memory.status(remote.repository.url, remote.proposals, commit, status)
