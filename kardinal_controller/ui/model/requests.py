"""The viewer, log in, actions, Events, errors, and the end of a stream."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from kardinal_controller.ui.model.parts import View

__all__ = [
    "ActionAnswer",
    "ActionName",
    "ActionRequest",
    "EventLine",
    "EventList",
    "LogIn",
    "LoggedIn",
    "PageError",
    "PlannedChange",
    "StreamEnd",
    "Viewer",
]


class Viewer(View):
    """The person who looks, and what the page lets them do."""

    user: str
    groups: list[str]
    auth: Literal["token", "proxy", "kubeconfig"]
    may_act: bool
    """Whether buttons carry commands out with the viewer's own identity; else they show the command only."""
    reads_as_viewer: bool
    """Whether YAML and Events can be read with the viewer's own token; else the command is shown."""
    namespaces: list[str]
    """The namespaces whose Pipelines the viewer may list, sorted."""
    version: str
    """The version of the program that serves the page."""


class LogIn(View):
    """The body of `POST session`: a bearer token, or the one-time code of the link that `kardinal ui` prints."""

    token: str | None = Field(default=None, repr=False)
    code: str | None = Field(default=None, repr=False)


class LoggedIn(View):
    """The answer to a log in."""

    viewer: Viewer
    secret: str | None = Field(default=None, repr=False)
    """The value of the header `X-Kardinal-Session` of every later request; absent where a cookie has the session."""


ActionName = Literal["promote", "retry", "pause", "resume", "rollback", "merge", "approve"]


class ActionRequest(View):
    """The body of `POST actions/{action}`; an action reads the fields that its command has as arguments."""

    namespace: str = Field(max_length=253)
    pipeline: str = Field(max_length=253)
    bundle: str | None = Field(default=None, max_length=253)
    """The Bundle that is promoted, retried or approved, or that a rollback goes back to."""
    environment: str | None = Field(default=None, max_length=253)
    gate: str | None = Field(default=None, max_length=320)
    """The gate at which a Bundle is approved, as `namespace/name` of its template."""
    reason: str | None = Field(default=None, max_length=1024)
    """Why the Pipeline is paused, or the Bundle approved."""
    emergency: bool = False
    hold: bool = True
    """Whether other Bundles are kept from the environment after a rollback."""
    pull_request: int | None = Field(default=None, ge=1)
    """The number of the pull request to merge."""


class PlannedChange(View):
    """The change that an action would make in one environment, as `kardinal plan` shows it."""

    environment: str
    sentence: str
    files: list[str]
    diff: str
    """At most 64 KiB."""
    pull_request: str | None = None
    """The title of the pull request that it would open."""
    note: str | None = None
    error: str | None = None


class ActionAnswer(View):
    """The result of an action, or with `?dry-run=true` the result that it would have."""

    lines: list[str]
    """The sentences that the command prints."""
    command: str
    """The command that does the same."""
    plan: list[PlannedChange] | None = None
    """Absent where there is no plan, and where the action was carried out."""


class EventLine(View):
    """An Event about an object."""

    type: str
    reason: str
    message: str
    about: str
    count: int
    at: datetime | None = None


class EventList(View):
    """The newest Events about the objects of a Bundle, newest first, at most 200."""

    items: list[EventLine]


class PageError(View):
    """The answer to a failed request: `{"message": "no Pipeline x in namespace shop", "remedy": "There are: y"}`."""

    message: str
    remedy: str
    auth: Literal["token", "proxy", "kubeconfig"] | None = None
    """How to log in; only with status 401."""
    command: str | None = None
    """The command that does what the page may not do."""


class StreamEnd(View):
    """The data of the last event of a stream, `end`; the page connects again if `again` is true."""

    reason: str
    again: bool
