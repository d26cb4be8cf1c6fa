"""Compute the change of a promotion into one environment as the agent would, but without an agent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from kardinal.cli.checkout import CallerRepositories
from kardinal.edits.images import ImageChange
from kardinal.extensions import Extensions
from kardinal.git import FIND_DEPTH, NO_COMMIT, BranchNotFound, Repository
from kardinal.git.inputs import with_inputs
from kardinal.git.names import branch_ref
from kardinal.objects.errors import KardinalError
from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.pipeline import Git
from kardinal.promotion.policy.soak import healthy_times
from kardinal.promotion.sources.edit_sources import Address, EditSources, find_commit
from kardinal.promotion.steps.commit_plan import commit_message, edit_of, image_changes_of
from kardinal.promotion.steps.declaration import PlannedStep, Role, Surroundings
from kardinal.promotion.steps.pins import images_by_tag, pinned
from kardinal.promotion.steps.pull_request_text import PullRequestFacts, body, title
from kardinal.promotion.steps.sequence import planned
from kardinal.promotion.steps.sequence_values import foreseen, foreseen_input
from kardinal.rendering.renderer import Renderer
from kardinal.tree.edit import Tree

__all__ = ["Planned", "Planner", "own_address"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The planned promotion into one environment.

    `files` and `diff` are the change, `message` is the commit message, `pull_request` its title and body. `error` is
    the reason why the promotion would fail, else empty.
    """

    environment: str
    approval: str
    branch: str
    files: Sequence[str] = ()
    diff: str = ""
    message: str = ""
    pull_request: tuple[str, str] | None = None
    note: str = ""
    """A sentence about a difference between the plan and the later promotion, or empty."""
    error: str = ""

    @property
    def sentence(self) -> str:
        """The effect of the promotion, such as "a commit on main changes 1 file"."""
        if self.error:
            return f"cannot be promoted: {self.error}"
        if not self.files:
            return f"nothing to change on {self.branch}"
        how = "a pull request to" if self.pull_request else "a commit on"
        count = len(self.files)
        return f"{how} {self.branch} changes {count} {'file' if count == 1 else 'files'}"

    def document(self) -> dict[str, Any]:
        document = {
            "name": self.environment,
            "approval": self.approval,
            "branch": self.branch,
            "changed": bool(self.files),
            "files": list(self.files),
            "diff": self.diff,
            "message": self.message,
        }
        if self.pull_request:
            document["pullRequest"] = dict(zip(("title", "body"), self.pull_request, strict=True))
        told = {"note": self.note, "error": self.error}
        return document | {name: text for name, text in told.items() if text}


def own_address(git: Git, bundle: Bundle, steps: Iterable[PromotionStep]) -> Address:
    """Return the address of the Pipeline's repository with every branch that the promotions of a Bundle read.

    The depth is one commit. For a Bundle with a configuration commit it is `FIND_DEPTH`, because the configuration that
    has landed is read from the history.
    """
    branches = dict.fromkeys([git.branch, *(step.spec.target_branch for step in steps)])
    depth = 1 if bundle.spec.artifacts.git_commit is None else FIND_DEPTH
    secret = git.secret_ref.name if git.secret_ref else None
    return Address(git.url, secret, "git.secretRef", refs=tuple(map(branch_ref, branches)), depth=depth)


@dataclass(frozen=True, slots=True)
class _Opened:
    """The commits that a promotion starts from, and its sequence with the outputs of its first steps inserted.

    `base` is the head of the branch that is written to, `source` the head of the source branch if that is another
    branch, and `inputs` are the commits of inputs by the name of their step.
    """

    base: str
    source: str | None
    inputs: Mapping[str, str]
    sequence: Sequence[PlannedStep]


class Planner:
    """Plans the promotions of one Bundle; `own` is the address of the Pipeline's repository."""

    def __init__(
        self,
        bundle: Bundle,
        own: Address,
        *,
        repositories: CallerRepositories,
        extensions: Extensions,
        renderer: Renderer,
    ) -> None:
        self._bundle = bundle
        self._own = own
        self._repositories = repositories
        self._extensions = extensions
        self._renderer = renderer

    async def plan(self, step: PromotionStep) -> Planned:
        """Return the plan of the promotion of one PromotionStep; an error is returned in it, and not raised."""
        spec = step.spec
        bundle = pinned(self._bundle, spec.update, spec.steps)
        place = Planned(
            environment=spec.environment,
            approval=spec.approval,
            branch=spec.target_branch,
            note=_unknown_digests(bundle, step),
        )
        repository = await self._repositories.open(self._own)

        async def own() -> Repository:
            return repository

        try:
            opened = await self._open(step, bundle, repository)
            sources = EditSources(step, bundle, self._repositories.open)
            await sources.open(opened.sequence, own, source=opened.source, inputs=opened.inputs)
            around = sources.surroundings(renderer=self._renderer)
            edit = edit_of(step, bundle, opened.sequence, around)
            found = await with_inputs(lambda: repository.plan(opened.base, edit))
            proposal = await self._proposal(step, bundle, repository, opened, around)
        except KardinalError as error:
            message = f"{error.field}: {error}" if error.field.startswith("input ") else str(error)
            return replace(place, error=message)
        return replace(
            place,
            files=[change.path for change in found.changes],
            diff=found.diff,
            message=str(commit_message(step, bundle)),
            pull_request=proposal if found.changes else None,
        )

    async def _open(self, step: PromotionStep, bundle: Bundle, repository: Repository) -> _Opened:
        """Find the commits that the steps with the roles OPEN and INPUT, such as `git-clone`, would open."""
        spec = step.spec
        sequence = list(planned(step.spec.steps, self._extensions.steps))
        source = (await repository.head(spec.git.branch)).commit
        base = await _head(repository, spec.target_branch) if spec.branch is not None else source
        commits = {"commit": base, "source": source} if spec.branch is not None else {"commit": base}
        outputs: dict[str, Mapping[str, str]] = {}
        inputs: dict[str, str] = {}
        for index, each in enumerate(sequence):
            name = each.spec.output_name
            if each.declaration.role is Role.OPEN:
                outputs[name] = commits
            elif each.declaration.role is Role.INPUT:
                sequence[index] = foreseen_input(step, bundle, each, outputs)
                _, inputs[name] = await find_commit(step, sequence[index], self._repositories.open)
                outputs[name] = {"commit": inputs[name]}
        found = foreseen(step, bundle, sequence, outputs)
        return _Opened(base, source if spec.branch is not None else None, inputs, found)

    async def _proposal(
        self, step: PromotionStep, bundle: Bundle, repository: Repository, opened: _Opened, around: Surroundings
    ) -> tuple[str, str] | None:
        """Return title and body of the pull request; None if the sequence opens no pull request."""
        if not any(entry.declaration.role is Role.PROPOSE for entry in opened.sequence):
            return None
        changes: dict[str, Sequence[ImageChange]] = {}

        def compare(tree: Tree) -> dict[str, bytes | None]:
            # This is passed to `plan` as an edit without changes, because the branch may not exist yet.
            changes.update(image_changes_of(tree, step, bundle, opened.sequence, around))
            return {}

        await with_inputs(lambda: repository.plan(opened.base, compare))
        proposal = PullRequestFacts(
            pipeline=step.spec.pipeline,
            environment=step.spec.environment,
            bundle=bundle,
            gates=None,
            metrics={},
            changes=changes,
            diff=None,
            follows=False,
            merged_by_agent=any(entry.declaration.role is Role.MERGE for entry in opened.sequence),
            now=datetime.now(UTC),
            soaks=healthy_times(bundle),
        )
        return title(proposal), body(proposal)


def _unknown_digests(bundle: Bundle, step: PromotionStep) -> str:
    """Return a note about images that the plan shows by tag, and the promotion writes by digest; else empty."""
    unknown = images_by_tag(bundle, step.spec.update, step.spec.steps)
    if not unknown:
        return ""
    return f"{', '.join(map(str, unknown))} will be written by digest, which is looked up when the Bundle starts"


async def _head(repository: Repository, branch: str) -> str:
    try:
        return (await repository.head(branch)).commit
    except BranchNotFound:
        return NO_COMMIT
