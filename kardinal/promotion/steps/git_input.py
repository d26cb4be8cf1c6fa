"""`git-clone` with a config: open another repository, branch, tag or commit, for steps that name it by its `as`.

An input is never written to. The commit that was found first becomes an output of the step, and every later run reads
this commit. So a branch that moves on, a restart, or a pull request that waits for days do not change the promoted
files.

The author of the Pipeline chooses the repository, under the same rules as for `git.url`: the same URLs and hosts are
accepted, and a Secret is sent only to a host that it names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from kardinal.models.base import SecretReference, Url
from kardinal.promotion.api.pipeline import Git, StepSpec
from kardinal.promotion.steps.declaration import PlannedStep, Role, StepConfig, StepDeclaration
from kardinal.promotion.steps.problems import SequenceProblem
from kardinal.tree.repository_url import repository_key, same_host

__all__ = ["GIT_INPUT", "INPUTS_LIMIT", "GitInputConfig", "InputSource", "input_of", "input_problems", "noted_commits"]

INPUTS_LIMIT: Final = 8
"""The largest number of inputs of one sequence, because each may need a mirror on disk and a connection to a host."""

_NO_NAME = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|\.$|/$|^/|^-")
_COMMIT = r"^[0-9a-f]{40}$"


def _ref_name(name: str) -> str:
    if name.startswith("refs/"):
        raise PydanticCustomError("ref", "is a full reference; write its name alone, without refs/heads/ or refs/tags/")
    if _NO_NAME.search(name) or name == "HEAD":
        raise PydanticCustomError("ref", "is no name of a branch or tag that Git accepts")
    return name


_RefName = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_ref_name)]


class GitInputConfig(StepConfig):
    """The input. At least one of `url`, `branch`, `tag` and `commit` must be given."""

    url: Annotated[Url | None, Field(description="The repository; by default the Pipeline's own.")] = None
    branch: Annotated[
        _RefName | None,
        Field(description="The branch; by default `main`, or `git.branch` in the Pipeline's own repository."),
    ] = None
    tag: Annotated[_RefName | None, Field(description="A tag, instead of the head of a branch.")] = None
    commit: Annotated[
        str | None,
        Field(pattern=_COMMIT, description="The id of a commit on the branch, all 40 digits, instead of its head."),
    ] = None
    secret_ref: Annotated[
        SecretReference | None,
        Field(description="The Secret to read it with; by default that of the Pipeline, on the same host only."),
    ] = None

    @model_validator(mode="after")
    def _names_something(self) -> GitInputConfig:
        if self.tag and (self.branch or self.commit):
            raise PydanticCustomError("ref", "tag stands beside branch or commit; keep one of them")
        if not (self.url or self.branch or self.tag or self.commit):
            raise PydanticCustomError("ref", "names nothing to open; give url, branch, tag or commit")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSource:
    """The place of a commit: its repository and branch or tag, and the Secret to read it with.

    Either `branch` or `tag` is set; `commit` must be on the branch. `secret` is a name in the promotion's namespace.
    """

    repository: str
    branch: str | None
    tag: str | None
    commit: str | None
    secret: str | None

    @property
    def place(self) -> str:
        """The place of the commit as text, such as `branch main of https://github.com/acme/app`."""
        return f"tag {self.tag} of {self.repository}" if self.tag else f"branch {self.branch} of {self.repository}"


def input_of(git: Git, config: StepConfig) -> InputSource:
    """Return the source of an input with its defaults. Raises `InvalidRepositoryURL`."""
    if not isinstance(config, GitInputConfig):
        raise TypeError(f"{type(config).__name__} is not the config of an input")
    repository = config.url or git.url
    own = repository_key(repository) == repository_key(git.url)
    secret = config.secret_ref or (git.secret_ref if own or same_host(repository, git.url) else None)
    return InputSource(
        repository=repository,
        branch=None if config.tag else config.branch or (git.branch if own else "main"),
        tag=config.tag,
        commit=config.commit,
        secret=secret.name if secret else None,
    )


def noted_commits(steps: Sequence[PlannedStep], outputs: Mapping[str, Any]) -> dict[str, str]:
    """Return the commit of each input that was opened before, by the name of the input; `outputs` are by step name."""
    names = [step.spec.output_name for step in steps if step.declaration.role is Role.INPUT]
    return {name: outputs[name]["commit"] for name in names if (outputs.get(name) or {}).get("commit")}


def input_problems(steps: Sequence[StepSpec], declarations: Sequence[StepDeclaration]) -> Iterator[SequenceProblem]:
    """Yield the problems of the inputs of a sequence, and of the steps that read from them."""
    opened: list[str] = []
    for index, (step, declaration) in enumerate(zip(steps, declarations, strict=True)):
        if declaration.role is Role.INPUT:
            opened.append(step.output_name)
            for field, message in _problems(step, count=len(opened)):
                yield SequenceProblem(index, f"steps[{index}].{field}", message)
        read = declaration.config.reads_from(step.config or {})
        if read is not None and "${" not in read and read not in opened:
            known = f"there are: {', '.join(opened)}" if opened else "add one with url, branch, tag or commit"
            message = f"no git-clone before this step is named {read!r} by its `as`; {known}"
            yield SequenceProblem(index, f"steps[{index}].config.input", message)


def _problems(step: StepSpec, *, count: int) -> Iterator[tuple[str, str]]:
    if step.as_ is None:
        yield "as", "is missing: steps read from an input by this name; or leave config out to open git.branch"
    if count == INPUTS_LIMIT + 1:
        yield "uses", f"a sequence has at most {INPUTS_LIMIT} inputs"
    for key in ("url", "secretRef"):
        if "${" in str((step.config or {}).get(key)):
            # The Bundle chooses versions, and must not be able to bring files from any repository.
            yield f"config.{key}", "must not have expressions: only the Pipeline says where files may come from"


GIT_INPUT = StepDeclaration(
    name="git-clone",
    about="With `as` and a `config` it opens another repository, branch, tag or commit instead, for steps that name it "
    "as their `input`. Nothing is written there. It leaves `commit`, the one that is read until the promotion ends.",
    role=Role.INPUT,
    config=GitInputConfig,
)
