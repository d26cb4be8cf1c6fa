"""Why a catalog cannot be compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kardinal.objects.errors import KardinalError

__all__ = ["NOWHERE", "CatalogError", "ErrorKind", "Where"]

ErrorKind = Literal["invalid", "fetch", "render", "refused", "limit"]
"""`invalid`: the configuration is wrong. `fetch`: a repository or chart cannot be had. `render`: a template fails.
`refused`: it would be possible, and is not allowed. `limit`: more time, memory or bytes than there may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The place of an error; each part is empty (or 0) where it is unknown.

    For example `global@1f2e3d4c, commodore.yml, line 7, instance nginx-2, parameter nginx.replicas`.
    """

    repository: str = ""
    """Name of the repository and the beginning of its commit: `component nginx@1f2e3d4c`."""
    file: str = ""
    line: int = 0
    instance: str = ""
    parameter: str = ""
    """The path of a parameter with dots: `nginx.replicas`."""

    def __str__(self) -> str:
        parts = [self.repository, self.file]
        parts += [f"line {self.line}"] if self.line else []
        parts += [f"instance {self.instance}"] if self.instance else []
        parts += [f"parameter {self.parameter}"] if self.parameter else []
        return ", ".join(part for part in parts if part)


NOWHERE = Where()


class CatalogError(KardinalError):
    """A catalog that cannot be compiled. Only `fetch` is transient, and only if its cause is."""

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        where: Where = NOWHERE,
        remedy: str = "",
        transient: bool = False,
    ) -> None:
        place = str(where)
        super().__init__(f"{place}: {message}" if place else message, remedy=remedy, transient=transient)
        self.kind = kind
        self.problem = message
        """The message without its place."""
        self.where = where
