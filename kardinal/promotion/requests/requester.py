"""The person who makes a request, and the error of a request that cannot be made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kardinal.kube import Client
from kardinal.objects.errors import KardinalError
from kardinal.promotion.api import Bundle, Pipeline
from kardinal.promotion.views.api_reader import ApiReader
from kardinal.promotion.views.reading import find_bundle, find_pipeline

__all__ = ["RequestDenied", "Requester", "Unanswered"]


class RequestDenied(KardinalError):
    """The request cannot be made, or was refused; the remedy is what to do about it."""


class Unanswered(RequestDenied):
    """The request was made, and no controller has answered it yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """A person, with the client that has their rights.

    `option` is appended to the commands of remedies, such as ` -n team-a`; defaults to nothing. `program` is what the
    person uses: the command line or the web page.
    """

    client: Client
    namespace: str
    by: str
    option: str = ""
    program: Literal["cli", "ui"] = "cli"

    @property
    def field_manager(self) -> str:
        return f"kardinal-{self.program}"

    @property
    def reader(self) -> ApiReader:
        return ApiReader(self.client)

    async def pipeline(self, name: str) -> Pipeline:
        """Return a Pipeline; raises `NotThere`."""
        return await find_pipeline(self.reader, self.namespace, name)

    async def bundle(self, pipeline: str, name: str | None) -> Bundle:
        """Return a Bundle of a Pipeline, without a name the one under way or the newest; raises `NotThere`."""
        return await find_bundle(self.reader, self.namespace, pipeline, name)
