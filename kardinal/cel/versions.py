"""The functions of Kubernetes for semantic versions (semver.org)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Final

from kardinal.cel.errors import Fault
from kardinal.cel.overloads import Function
from kardinal.cel.values import UINT_MAX

__all__ = ["VERSION_FUNCTIONS"]

_NUMBER: Final = r"0|[1-9][0-9]*"
_VERSION: Final = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)


_LONGEST: Final = 256
"""The most characters of a version."""


@dataclass(frozen=True, order=True, slots=True)
class Version:
    """Ordered as the standard has it: a pre-release comes before its release, numbers before words."""

    cel_type: ClassVar[str] = "kubernetes.Semver"

    core: tuple[int, int, int]
    released: bool
    stage: tuple[tuple[bool, int, str], ...]


def _parsed(text: str, normalize: bool) -> Version | None:
    if len(text) > _LONGEST:
        return None
    match = _VERSION.fullmatch(_normalized(text) if normalize else text)
    if match is None:
        return None
    major, minor, patch, stage = match.groups()
    core = (int(major), int(minor), int(patch))
    parts = stage.split(".") if stage else []
    if max(core) > UINT_MAX:
        return None
    if any(not part or (part.isdigit() and len(part) > 1 and part[0] == "0") for part in parts):
        return None
    ranked = tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts)
    return Version(core, not parts, ranked)


def _normalized(text: str) -> str:
    text = text.removeprefix("v")
    core, sign, rest = re.fullmatch(r"([^-+]*+)([-+]?+)(.*+)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    numbers = [part.lstrip("0") or "0" if part else part for part in core.split(".", 2)]
    if len(numbers) < 3 and sign:
        return text
    return ".".join([*numbers, "0", "0"][:3]) + sign + rest


def _semver(text: str, normalize: bool = False) -> Version:
    found = _parsed(text, normalize)
    if found is None:
        raise Fault("conversion", "No Major.Minor.Patch elements found")
    return found


def _is_semver(text: str, normalize: bool = False) -> bool:
    return _parsed(text, normalize) is not None


VERSION_FUNCTIONS: dict[str, Function] = {
    "semver": Function({(str,): _semver, (str, bool): _semver}),
    "isSemver": Function({(str,): _is_semver, (str, bool): _is_semver}),
    "major": Function({(Version,): lambda version: version.core[0]}),
    "minor": Function({(Version,): lambda version: version.core[1]}),
    "patch": Function({(Version,): lambda version: version.core[2]}),
    "isLessThan": Function({(Version, Version): lambda one, other: one < other}),
    "isGreaterThan": Function({(Version, Version): lambda one, other: one > other}),
    "compareTo": Function({(Version, Version): lambda one, other: int(one > other) - int(one < other)}),
}
