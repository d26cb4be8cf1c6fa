"""Shared by the steps that open, await and withdraw a pull request: which one is ours, and what it says.

The body ends with a mark that is not shown: whose pull request it is, and a digest of the text. By the first a process
that died finds its own, whatever the host's clock says. By the second the text is written again only when kardinal has
something else to say, and not because a host or a person has changed its form.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from kardinal.git import Repository
from kardinal.scm import PullRequest, PullRequests
from kardinal.steps.pull_request_text import Proposal, body, title
from kardinal_agent.steps.base import StepContext

__all__ = ["AGENT", "Text", "is_of_bundle", "own_pull_request", "text_of", "without_owner"]

AGENT = "kardinal"
"""The name under which pull requests without review are merged, and superseded ones closed."""

_MARK = re.compile(r"<!-- kardinal (?P<uid>[\w.-]+) (?P<digest>[0-9a-f]{16}) -->\s*\Z")


@dataclass(frozen=True, slots=True)
class Text:
    """Title and body of a pull request, with the mark in the body."""

    title: str
    body: str

    def is_told(self, pull_request: PullRequest) -> bool:
        """Return whether the last text that was written is this one."""
        told, ours = _MARK.search(pull_request.body), _MARK.search(self.body)
        return told is not None and ours is not None and told["digest"] == ours["digest"]


def is_of_bundle(pull_request: PullRequest, uid: str) -> bool:
    """Return whether the mark of a pull request names the Bundle; true without one, which people may have removed."""
    mark = _MARK.search(pull_request.body)
    return mark is None or mark["uid"] == uid


def without_owner(body: str) -> str:
    """Return the text of a pull request that is withdrawn, so that a promotion that is made again leaves it alone."""
    return _MARK.sub(lambda mark: f"<!-- kardinal withdrawn {mark['digest']} -->\n", body)


async def own_pull_request(context: StepContext, pull_requests: PullRequests) -> PullRequest | None:
    """Return the newest pull request of the branch if it is this promotion's own, whatever has become of it.

    The process may have died between opening it and noting its number, and a person may have merged or closed it
    meanwhile. An older one belongs to an earlier Bundle of the name.
    """
    found = await pull_requests.find(context.branch, base=context.target)
    if found is None:
        return None
    mark = _MARK.search(found.body)
    if mark is not None:
        return found if mark["uid"] == context.bundle.metadata.uid else None
    started = context.status.started_at
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
    )
    heading, text = title(proposal), body(proposal)
    digest = hashlib.sha256(f"{heading}\n{text}".encode()).hexdigest()[:16]
    return Text(heading, f"{text}\n<!-- kardinal {context.bundle.metadata.uid} {digest} -->\n")
