"""Texts, links, states and conditions, which several documents have."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

__all__ = ["ConditionLine", "Link", "PageNotice", "Sentence", "StateMark", "Tone", "View"]


class View(BaseModel):
    """A part of a document: immutable, in JSON with names in camelCase."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True, extra="forbid", frozen=True
    )


Tone = Literal["ok", "move", "you", "held", "bad", "warn", "rest"]
"""The colour of a state. It never stands alone: the page shows an icon and the word of the state beside it."""


class StateMark(View):
    """A state of `docs/states.md`: `{"kind": "PromotionStep", "name": "WaitingForMerge", "tone": "you", …}`."""

    kind: str
    name: str
    tone: Tone
    meaning: str
    """The sentence of `docs/states.md`."""


class Link(View):
    """A text that may lead somewhere; `url` has the scheme http or https, or is absent."""

    text: str
    url: str | None = None


class Sentence(View):
    """The answer to "why is it not further?", as `kardinal status` and `kardinal explain` give it."""

    text: str
    tone: Tone
    detail: str | None = None
    """A second line: what is known besides, such as `step 6 of 6 · health-check`."""
    command: str | None = None
    """The command to type next."""
    link: Link | None = None
    """The pull request, or another page of another program, that the sentence is about."""
    until: datetime | None = None
    """The time at which it changes by itself, for a countdown."""


class PageNotice(View):
    """A line above everything else: a shard without an agent, a pause, a Pipeline that is not Ready."""

    tone: Tone
    text: str
    detail: str | None = None
    command: str | None = None
    since: datetime | None = None


class ConditionLine(View):
    """A condition of an object."""

    type: str
    status: str
    reason: str
    message: str
    since: datetime | None = None
