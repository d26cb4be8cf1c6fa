"""The record of a pull request of provider `local`: one JSON document, readable with `git show`.

The document comes from a repository that anyone with access may write to, so it is validated when it is read. An
invalid record raises an error that names its reference.
"""

from __future__ import annotations

from datetime import datetime

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from kardinal.scm.base import NewPullRequest, PullRequest, PullRequestState
from kardinal.scm.comments import unmarked
from kardinal.scm.errors import PullRequestError
from kardinal.scm.values import draft_title, has_draft_title

__all__ = ["Record"]


class Record(BaseModel):
    """The content of `refs/kardinal/pull/<n>/meta`."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    title: str
    body: str
    head: str
    base: str
    state: PullRequestState = "open"
    created_at: AwareDatetime
    labels: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()
    merged_by: str | None = None
    merged_at: AwareDatetime | None = None
    merge_commit: str | None = None
    closed_by: str | None = None
    environment: str = ""
    bundle: str = ""
    pipeline: str = ""

    @classmethod
    def of(cls, new: NewPullRequest, *, now: datetime) -> Record:
        """Return the record of a pull request opened now."""
        return cls(
            title=draft_title("Draft:", new),
            body=new.body,
            head=new.head,
            base=new.base,
            created_at=now,
            labels=new.labels,
            environment=new.environment,
            bundle=new.bundle,
            pipeline=new.pipeline,
        )

    @classmethod
    def decode(cls, content: bytes, *, number: int) -> Record:
        """Return the record in a blob."""
        try:
            return cls.model_validate_json(content)
        except ValidationError:
            raise PullRequestError(
                f"the record of pull request {number} is damaged",
                remedy=f"Delete it: git update-ref -d refs/kardinal/pull/{number}/meta",
            ) from None

    def encode(self) -> bytes:
        return self.model_dump_json(by_alias=True, exclude_none=True, indent=2).encode() + b"\n"

    def changed(self, **fields: object) -> Record:
        return self.model_copy(update=fields)

    def pull_request(self, number: int, *, repository: str) -> PullRequest:
        fields = dict(self) | {"comments": tuple(map(unmarked, self.comments))}
        del fields["closed_by"]
        draft = has_draft_title(self.title)
        return PullRequest(number=number, url=f"{repository}#pull/{number}", draft=draft, **fields)
