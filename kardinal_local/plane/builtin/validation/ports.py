"""Validate ports: a number, or the name of a port of a container."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kardinal_local.plane.builtin.validation.faults import invalid
from kardinal_local.plane.errors import Cause

__all__ = ["in_port_range", "port_name_problems", "port_or_name"]

_PORT_NAME: Final = re.compile(r"[-a-z0-9]+")
_LETTER: Final = re.compile(r"[a-z]")


def in_port_range(path: str, port: int) -> Iterator[Cause]:
    if not 1 <= port <= 65535:
        yield invalid(path, port, "must be between 1 and 65535, inclusive")


def port_or_name(path: str, port: int | str) -> Iterator[Cause]:
    """The faults of a reference to a port of a container."""
    if isinstance(port, int):
        yield from in_port_range(path, port)
    else:
        yield from (invalid(path, port, problem) for problem in port_name_problems(port))


def port_name_problems(name: str) -> list[str]:
    """What is wrong with the name by which services find a port."""
    problems = ["must be no more than 15 characters"] if len(name) > 15 else []
    if not _PORT_NAME.fullmatch(name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _LETTER.search(name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name[:1] == "-" or name[-1:] == "-":
        problems.append("must not begin or end with a hyphen")
    return problems
