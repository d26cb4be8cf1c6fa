"""Which steps a promotion runs, and whether a sequence written by hand makes sense (DD 3.15).

The controller asks this before it makes a Graph, the agent when it executes; neither needs the other for it. A sequence
that this version cannot execute as written is refused with the field at fault and never shortened: a step that is
silently left out is a false Verified.

What a sequence must obey, besides the names and inputs of its steps:

- Git is written in one order: `git-clone`, one or more edits, `git-commit`, `git-push`. All of it or none of it.
- `open-pr` and `wait-for-merge` come together, after `git-push`, exactly where the environment asks for a pull request
  (`approval: pr-review`, or `pr: true`). Otherwise a review could be skipped, or a push land where nobody looks.
- `health-check` is last and always there: Verified means proven, so a sequence cannot end without a proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ConfigDict, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from kardinal.api.base import Model, RelativePath
from kardinal.api.pipeline import Approval, Provider, StepSpec
from kardinal.objects.suggestions import nearest
from kardinal.objects.supported import UNAVAILABLE_STEPS

__all__ = [
    "EDITS",
    "STEP_CONFIGS",
    "KustomizeSetImageConfig",
    "NoConfig",
    "SequenceProblem",
    "default_sequence",
    "sequence_problems",
    "wants_pull_request",
]


class StepConfig(Model):
    """The input of a step; a key it does not know is an error."""

    model_config = ConfigDict(extra="forbid")


class NoConfig(StepConfig):
    """The input of a step that has nothing to choose."""


class KustomizeSetImageConfig(StepConfig):
    """`path`: the overlay, relative to the environment's directory; without it the environment's directory itself."""

    path: RelativePath | None = None

    @field_validator("path")
    @classmethod
    def _inside_the_environment(cls, path: str | None) -> str | None:
        if path is not None and (path.startswith("/") or ".." in path.split("/")):
            raise PydanticCustomError("outside", "must be a relative path without .. segments")
        return path


STEP_CONFIGS: Final[Mapping[str, type[StepConfig]]] = {
    "git-clone": NoConfig,
    "kustomize-set-image": KustomizeSetImageConfig,
    "git-commit": NoConfig,
    "git-push": NoConfig,
    "open-pr": NoConfig,
    "wait-for-merge": NoConfig,
    "health-check": NoConfig,
}
"""The built-in steps and their inputs."""

EDITS: Final = frozenset(["kustomize-set-image"])
"""The steps that change files; they may stand in a sequence more than once."""

_PROPOSAL: Final = ("open-pr", "wait-for-merge")
_WITHOUT_PULL_REQUESTS: Final = frozenset(["git"])

_NEEDS: Final[Mapping[str, tuple[str, str]]] = {
    "kustomize-set-image": ("git-clone", "there is no tree to edit"),
    "git-commit": ("git-clone", "there is no tree to commit"),
    "git-push": ("git-commit", "there is nothing to push"),
    "open-pr": ("git-push", "there is no branch to propose"),
    "wait-for-merge": ("open-pr", "there is no pull request to wait for"),
}
_LEADS_TO: Final[Mapping[str, str]] = {
    "git-clone": "git-commit",
    "kustomize-set-image": "git-commit",
    "git-commit": "git-push",
    "open-pr": "wait-for-merge",
}


@dataclass(frozen=True, slots=True)
class SequenceProblem:
    """What is wrong with a sequence: which step, the field relative to the environment, and the remedy."""

    index: int
    field: str
    message: str


def default_sequence(*, approval: Approval, pr: bool, strategy: str) -> tuple[StepSpec, ...]:
    """The steps of an environment that lists none."""
    proposal = _PROPOSAL if wants_pull_request(approval=approval, pr=pr) else ()
    names = ("git-clone", f"{strategy}-set-image", "git-commit", "git-push", *proposal, "health-check")
    return tuple(StepSpec(uses=name) for name in names)


def wants_pull_request(*, approval: Approval, pr: bool) -> bool:
    return pr or approval == "pr-review"


def sequence_problems(
    steps: Sequence[StepSpec], *, approval: Approval, pr: bool, provider: Provider
) -> list[SequenceProblem]:
    """Everything that keeps `steps` from being executed as written, in order; empty when they can be."""
    if not steps:
        return [SequenceProblem(0, "steps", "the sequence is empty: leave steps out to get the default sequence")]
    problems = [problem for index, step in enumerate(steps) for problem in _step_problems(index, step)]
    if not problems:
        problems = [
            *_order_problems([step.uses for step in steps]),
            *_proposal_problems([step.uses for step in steps], approval=approval, pr=pr, provider=provider),
        ]
    return sorted(problems, key=lambda problem: problem.index)


def _step_problems(index: int, step: StepSpec) -> Iterable[SequenceProblem]:
    field = f"steps[{index}]"
    config = STEP_CONFIGS.get(step.uses)
    if config is None:
        yield SequenceProblem(index, f"{field}.uses", _unknown_step(step.uses))
        return
    try:
        config.model_validate(step.config or {})
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            path = ".".join(str(part) for part in detail["loc"])
            yield SequenceProblem(index, f"{field}.config.{path}", _config_message(config, step.uses, detail))


def _unknown_step(name: str) -> str:
    if name in UNAVAILABLE_STEPS:
        return f"step {name!r} is not available in this version"
    if near := nearest(name, STEP_CONFIGS):
        return f"unknown step {name!r}; did you mean {near!r}?"
    return (
        f"unknown step {name!r}; custom steps are not available in this version, built in are {', '.join(STEP_CONFIGS)}"
    )


def _config_message(config: type[StepConfig], step: str, detail: Mapping[str, Any]) -> str:
    if detail["type"] != "extra_forbidden":
        return f"{detail['msg']} (input of {step})"
    known = [field.alias or name for name, field in config.model_fields.items()]
    if not known:
        return f"{step} takes no config; remove it"
    near = nearest(str(detail["loc"][-1]), known)
    return f"{step} has no such input; " + (f"did you mean {near!r}?" if near else f"it takes {', '.join(known)}")


def _order_problems(names: list[str]) -> Iterable[SequenceProblem]:
    for index, name in enumerate(names):
        before, after = names[:index], names[index + 1 :]
        field = f"steps[{index}].uses"
        if name in before and name not in EDITS:
            yield SequenceProblem(index, field, f"{name} stands in the sequence twice; keep one")
            continue
        needed, why = _NEEDS.get(name, (None, ""))
        if needed and needed not in before:
            yield SequenceProblem(index, field, f"{name} before {needed}: {why}; put {needed} before it")
        if name == "git-commit" and EDITS.isdisjoint(before):
            yield SequenceProblem(index, field, "no step before git-commit edits a file; add kustomize-set-image")
        follower = _LEADS_TO.get(name)
        if follower and follower not in after:
            yield SequenceProblem(index, field, f"{name} has no effect without {follower}; add {follower} after it")
    if names[-1] != "health-check":
        yield SequenceProblem(
            len(names) - 1,
            f"steps[{len(names) - 1}].uses",
            "the last step must be health-check: an environment is Verified only when it proves what it runs",
        )


def _proposal_problems(
    names: list[str], *, approval: Approval, pr: bool, provider: Provider
) -> Iterable[SequenceProblem]:
    asked_by = "approval" if approval == "pr-review" else "pr"
    push = names.index("git-push") if "git-push" in names else None
    proposal = names.index("open-pr") if "open-pr" in names else None
    wanted = wants_pull_request(approval=approval, pr=pr)
    if proposal is not None and not wanted:
        yield SequenceProblem(
            proposal,
            f"steps[{proposal}].uses",
            "open-pr in an environment without pull requests; set approval: pr-review or pr: true",
        )
    if proposal is None and wanted and push is not None:
        yield SequenceProblem(
            push,
            f"steps[{push}].uses",
            f"git-push without open-pr would land unseen, but {asked_by} asks for a pull request; add open-pr after it",
        )
    if proposal is not None and provider in _WITHOUT_PULL_REQUESTS:
        yield SequenceProblem(
            proposal,
            asked_by,
            f"provider {provider!r} has no pull requests; use approval: auto without pr, or another git.provider",
        )
