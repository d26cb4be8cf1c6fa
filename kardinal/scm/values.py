"""Values of hosts: validated before use, and compared in the same way as hosts do."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from kardinal.scm.base import NewPullRequest
from kardinal.scm.errors import UnknownAnswer
from kardinal.tree.commit_message import CommitMessage

__all__ = ["draft_title", "has_draft_title", "parsed", "same_text", "squash_text"]

_DRAFT = ("wip:", "[wip]", "draft:", "[draft]", "(draft)")
"""Title prefixes of a draft at Gitea and GitLab, unless their administrators have changed them."""

M = TypeVar("M", bound=BaseModel)


def parsed(model: type[M], value: Any) -> M:
    """Return `value` as a model; raises `UnknownAnswer` if the host's answer has another shape."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        wrong = ".".join(map(str, error.errors(include_input=False)[0]["loc"])) or "everything"
        name = model.__name__.removeprefix("Api")
        raise UnknownAnswer(f"the host's answer is no {name} (field {wrong})") from None


def squash_text(message: CommitMessage, number: int) -> tuple[str, str]:
    """Return title and body of a squash commit.

    The title names the pull request, as in the hosts' own messages, for example `Promote web to prod (#17)`.
    """
    title, _, rest = str(message).partition("\n\n")
    return f"{title.strip()} (#{number})", rest.strip()


def same_text(one: str, other: str) -> bool:
    """Return whether two texts are equal for a host that changes line endings and trims."""
    return one.replace("\r\n", "\n").strip() == other.replace("\r\n", "\n").strip()


def has_draft_title(title: str) -> bool:
    """Return whether a title marks a pull request as a draft, for hosts without a field for it."""
    return title.strip().casefold().startswith(_DRAFT)


def draft_title(word: str, new: NewPullRequest) -> str:
    """Return the title of a new pull request; that of a draft starts with the host's prefix, such as `WIP:`."""
    return f"{word} {new.title}" if new.draft else new.title
