"""The steps that a promotion runs, and the validation of a sequence that a user wrote.

The controller calls this before it makes a Graph, and the agent before it executes; neither depends on the other. A
sequence that this version cannot execute as written is refused, with the field. A step is never ignored: the
environment would become Verified without having been.

Besides the names and inputs of the steps, the rules are about roles (`Role`), so that any step of a role may take the
place of another one:

- Git is written in one order: OPEN, one or more EDIT, COMMIT, PUSH. Either all of these are present or none.
- INPUT may be anywhere before the step that reads from it, any number of times; an input is never written to.
- PROPOSE comes after PUSH, exactly if the environment asks for a pull request (`approval: pr-review`, or `pr: true`),
  and is followed by AWAIT or MERGE. Otherwise a review could be skipped, or a push could land without one.
- MERGE is for `approval: auto`: with `approval: pr-review` a person merges.
- PROVE is last and required: Verified means proven, so a sequence cannot end without a proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kardinal.objects.capabilities import Capabilities
from kardinal.objects.suggestions import nearest
from kardinal.promotion.api.bundle import ArtifactKind
from kardinal.promotion.api.pipeline import Approval, StepSpec
from kardinal.promotion.steps.builtin import (
    GIT_CLONE,
    GIT_COMMIT,
    GIT_PUSH,
    HEALTH_CHECK,
    MERGE_PR,
    OPEN_PR,
    WAIT_FOR_MERGE,
)
from kardinal.promotion.steps.config import planned_step
from kardinal.promotion.steps.config_errors import config_errors
from kardinal.promotion.steps.config_merge import CONFIG_MERGE
from kardinal.promotion.steps.control import control_problems
from kardinal.promotion.steps.custom import custom_step, is_custom
from kardinal.promotion.steps.declaration import PlannedStep, Role, StepDeclaration
from kardinal.promotion.steps.git_input import input_problems
from kardinal.promotion.steps.helm_set_chart import HELM_SET_CHART
from kardinal.promotion.steps.helm_set_image import HELM_SET_IMAGE
from kardinal.promotion.steps.kustomize_build import KUSTOMIZE_BUILD
from kardinal.promotion.steps.kustomize_set_image import KUSTOMIZE_SET_IMAGE
from kardinal.promotion.steps.problems import SequenceProblem
from kardinal.promotion.steps.replace import REPLACE

__all__ = [
    "SequenceProblem",
    "StepTable",
    "declaration_of",
    "default_sequence",
    "planned",
    "sequence_problems",
    "without_taker",
]

StepTable = Mapping[str, StepDeclaration]
"""Every step that a program executes, by name."""

_NEEDS: Final[Mapping[Role, tuple[Role, str]]] = {
    Role.EDIT: (Role.OPEN, "there is no tree to edit"),
    Role.COMMIT: (Role.OPEN, "there is no tree to commit"),
    Role.PUSH: (Role.COMMIT, "there is nothing to push"),
    Role.PROPOSE: (Role.PUSH, "there is no branch to propose"),
    Role.AWAIT: (Role.PROPOSE, "there is no pull request to wait for"),
    Role.MERGE: (Role.PROPOSE, "there is no pull request to merge"),
}
"""Role -> the role that an earlier step must have, and the reason."""

_LEADS_TO: Final[Mapping[Role, tuple[Role, ...]]] = {
    Role.OPEN: (Role.COMMIT,),
    Role.EDIT: (Role.COMMIT,),
    Role.COMMIT: (Role.PUSH,),
    Role.PROPOSE: (Role.AWAIT, Role.MERGE),
}
"""Role -> the roles of which a later step must have one, because the step has no effect otherwise."""

_ONCE: Final = frozenset(Role) - {Role.EDIT, Role.INPUT}
"""Roles whose step acts for the whole sequence and is there once. A step without a role may be repeated."""

_EDITS: Final[Mapping[str, str]] = {
    "kustomize": KUSTOMIZE_SET_IMAGE.name,
    "helm": HELM_SET_IMAGE.name,
    "replace": REPLACE.name,
}
"""Strategy -> the step that sets images in this way. An unknown strategy is taken as the name of a step."""


def default_sequence(
    *,
    approval: Approval,
    pr: bool,
    strategy: str,
    artifacts: Sequence[ArtifactKind] = ("images",),
    layout: str = "directory",
) -> tuple[StepSpec, ...]:
    """Return the steps of an environment that lists none, for a Bundle with `artifacts`.

    A configuration is merged before versions are set, because it contains the versions of the time when it was written.
    An own branch is rendered anew each time, so its sequence has the steps for all kinds of artifacts.
    """
    merge = WAIT_FOR_MERGE if approval == "pr-review" else MERGE_PR
    proposal = (OPEN_PR.name, merge.name) if _wants_pull_request(approval=approval, pr=pr) else ()
    takers = {
        "gitCommit": CONFIG_MERGE.name,
        "charts": HELM_SET_CHART.name,
        "images": _EDITS.get(strategy, strategy),
    }
    edits = [name for kind, name in takers.items() if kind in artifacts or layout == "branch"]
    # For an own branch, a kustomization is rendered, because its bases are elsewhere on the source branch.
    render = (KUSTOMIZE_BUILD.name,) if layout == "branch" and strategy == "kustomize" else ()
    names = (GIT_CLONE.name, *edits, *render, GIT_COMMIT.name, GIT_PUSH.name, *proposal, HEALTH_CHECK.name)
    return tuple(StepSpec(uses=name) for name in names)


def declaration_of(step: StepSpec, table: StepTable) -> StepDeclaration:
    """Return the declaration of a known or custom step; raises KeyError for any other step."""
    if step.uses not in table and is_custom(step):
        return custom_step(step.uses)
    declaration = table[step.uses]
    return declaration.with_config if step.config and declaration.with_config else declaration


def planned(steps: Iterable[StepSpec], table: StepTable) -> tuple[PlannedStep, ...]:
    """Return the declarations and configs of a valid sequence; see `config.resolved` for expressions."""
    return tuple(planned_step(step, declaration_of(step, table)) for step in steps)


def without_taker(steps: Iterable[StepSpec], table: StepTable, artifacts: Iterable[ArtifactKind]) -> list[ArtifactKind]:
    """Return the kinds of artifacts that no edit of a sequence sets: they would be Verified without being deployed.

    A sequence without edits leaves the images to another tool, for example to a custom step; the health check then
    proves that they are deployed.
    """
    edits = [found for step in steps if (found := table.get(step.uses)) is not None and found.role is Role.EDIT]
    proven = () if edits else ("images",)
    return [
        kind
        for kind in artifacts
        if kind not in proven and not any(edit.takes is None or kind in edit.takes for edit in edits)
    ]


def sequence_problems(
    steps: Sequence[StepSpec], *, approval: Approval, pr: bool, capabilities: Capabilities, table: StepTable
) -> list[SequenceProblem]:
    """Return every problem that keeps `steps` from being executed as written, in order; empty if there is none.

    `capabilities` are those of the provider.
    """
    if not steps:
        return [SequenceProblem(0, "steps", "the sequence is empty: leave steps out to get the default sequence")]
    problems = [problem for index, step in enumerate(steps) for problem in _step_problems(index, step, table)]
    if not problems:
        declarations = [declaration_of(step, table) for step in steps]
        problems = [
            *control_problems(steps, declarations),
            *input_problems(steps, declarations),
            *_order_problems(declarations, table),
            *_proposal_problems(declarations, table, approval=approval, pr=pr, capabilities=capabilities),
        ]
    return sorted(problems, key=lambda problem: problem.index)


def _step_problems(index: int, step: StepSpec, table: StepTable) -> Iterable[SequenceProblem]:
    field = f"steps[{index}]"
    if step.uses not in table and not is_custom(step):
        yield SequenceProblem(index, f"{field}.uses", _unknown_step(step.uses, table))
        return
    for place, message in config_errors(declaration_of(step, table), step):
        yield SequenceProblem(index, f"{field}.{place}", message)


def _unknown_step(name: str, table: StepTable) -> str:
    if near := nearest(name, table):
        return f"unknown step {name!r}; did you mean {near!r}?"
    return f"unknown step {name!r}; a step of your own needs config.url, built in are {', '.join(table)}"


def _order_problems(steps: Sequence[StepDeclaration], table: StepTable) -> Iterable[SequenceProblem]:
    for index, step in enumerate(steps):
        field = f"steps[{index}].uses"
        if step.role in _ONCE and step in steps[:index]:
            other = ", or give one `as` and config to make it an input" if step.with_config else ""
            yield SequenceProblem(index, field, f"{step.name} stands in the sequence twice; keep one{other}")
            continue
        before, after = ({other.role for other in part} for part in (steps[:index], steps[index + 1 :]))
        for message in _neighbour_problems(step, table, before=before, after=after):
            yield SequenceProblem(index, field, message)
    if not steps[-1].proves:
        prove = _names(Role.PROVE, table)
        yield SequenceProblem(
            len(steps) - 1,
            f"steps[{len(steps) - 1}].uses",
            f"the last step must be {prove}: an environment is Verified only when it proves what it runs",
        )


def _neighbour_problems(
    step: StepDeclaration, table: StepTable, *, before: set[Role | None], after: set[Role | None]
) -> Iterable[str]:
    if step.role is None:
        return
    needed, missing = _NEEDS.get(step.role, (None, ""))
    if needed and needed not in before:
        names = _names(needed, table)
        yield f"{step.name} before {names}: {missing}; put {names} before it"
    if step.role is Role.COMMIT and Role.EDIT not in before:
        yield f"no step before {step.name} edits a file; add {_names(Role.EDIT, table)}"
    followers = _LEADS_TO.get(step.role, ())
    if followers and not after.intersection(followers):
        names = " or ".join(_names(role, table) for role in followers)
        yield f"{step.name} has no effect without {names}; add {names} after it"


def _proposal_problems(
    steps: Sequence[StepDeclaration], table: StepTable, *, approval: Approval, pr: bool, capabilities: Capabilities
) -> Iterable[SequenceProblem]:
    asked_by = "approval" if approval == "pr-review" else "pr"
    push, proposal = (_position(steps, role) for role in (Role.PUSH, Role.PROPOSE))
    wanted = _wants_pull_request(approval=approval, pr=pr)
    if proposal is not None and not wanted:
        yield SequenceProblem(
            proposal,
            f"steps[{proposal}].uses",
            f"{steps[proposal].name} in an environment without pull requests; set approval: pr-review or pr: true",
        )
    if proposal is None and wanted and push is not None:
        names = _names(Role.PROPOSE, table)
        yield SequenceProblem(
            push,
            f"steps[{push}].uses",
            f"{steps[push].name} without {names} would land unseen, but {asked_by} asks for a pull "
            f"request; add {names} after it",
        )
    yield from _merge_problems(steps, approval=approval)
    if proposal is not None and not capabilities.pull_requests:
        yield SequenceProblem(
            proposal,
            asked_by,
            "this provider has no pull requests; use approval: auto without pr, or another git.provider",
        )


def _merge_problems(steps: Sequence[StepDeclaration], *, approval: Approval) -> Iterable[SequenceProblem]:
    merge, wait = (_position(steps, role) for role in (Role.MERGE, Role.AWAIT))
    if merge is None:
        return
    field = f"steps[{merge}].uses"
    if approval == "pr-review":
        message = f"{steps[merge].name} would merge without a review, but approval asks for one: a person must merge"
        yield SequenceProblem(merge, field, message)
    elif wait is not None:
        message = f"{steps[merge].name} and {steps[wait].name} stand in one sequence: one merges, the other waits"
        yield SequenceProblem(merge, field, f"{message} for a person; keep one")


def _wants_pull_request(*, approval: Approval, pr: bool) -> bool:
    return pr or approval == "pr-review"


def _position(steps: Sequence[StepDeclaration], role: Role) -> int | None:
    return next((index for index, step in enumerate(steps) if step.role is role), None)


def _names(role: Role, table: StepTable) -> str:
    return " or ".join(step.name for step in table.values() if step.role is role)
