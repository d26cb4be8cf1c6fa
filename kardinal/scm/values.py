"""Values of hosts: checked before they are used, and compared as hosts keep them."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from kardinal.scm.errors import UnknownAnswer
from kardinal.steps.commit_message import CommitMessage

__all__ = ["has_draft_title", "parsed", "same_text", "squash_text"]

_DRAFT = ("wip:", "[wip]", "draft:", "[draft]", "(draft)")
"""Beginnings of the title of a draft at Gitea and at GitLab, unless their administrators chose others."""

M = TypeVar("M", bound=BaseModel)


def parsed(model: type[M], value: Any) -> M:
    """Return `value` as a model; raises `UnknownAnswer` for a host that answers with something else."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        wrong = ".".join(map(str, error.errors(include_input=False)[0]["loc"])) or "everything"
        name = model.__name__.removeprefix("Api")
        raise UnknownAnswer(f"the host's answer is no {name} (field {wrong})") from None


def squash_text(message: CommitMessage, number: int) -> tuple[str, str]:
    """Return title and rest of the message of a squash; the title names the pull request, as a host's own would."""
    title, _, rest = str(message).partition("\n\n")
    return f"{title.strip()} (#{number})", rest.strip()


def same_text(one: str, other: str) -> bool:
    """Return whether two texts are the same to a host that changes line endings and trims."""
    return one.replace("\r\n", "\n").strip() == other.replace("\r\n", "\n").strip()


def has_draft_title(title: str) -> bool:
    """Return whether a title makes a pull request a draft, where the host has no field that says so."""
    return title.strip().casefold().startswith(_DRAFT)
