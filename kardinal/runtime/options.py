"""Declare the options of a program, each in one place: flag, default, values, help and, if it has one, `envvar`.

An option is a field of a dataclass. The program is composed from an object of this class, which tests create directly
and the command line creates from its arguments:

    @dataclass(frozen=True)
    class Options:
        git_transfer_max: float = setting("--git-transfer-max", default="1h", read=seconds, help="How long …")

    @click.command()
    @options_of(Options)
    def main(*, options: Options) -> None: ...

`read` turns the text of the command line into the value of the field, and raises `click.BadParameter` for a wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import Any, TypeVar

import click

from kardinal.objects.duration import DurationError, parse_duration
from kardinal.runtime.addresses import split_address

__all__ = [
    "address",
    "address_setting",
    "hosts",
    "interval",
    "metrics_auth_setting",
    "namespace_patterns",
    "option_of",
    "options_of",
    "patterns",
    "seconds",
    "setting",
    "settings_of",
    "size",
]

T = TypeVar("T")
Command = Callable[..., None]

_DECLARED = "option"
_NESTED = "options"

_SIZE = re.compile(r"([0-9]{1,15})(Ki|Mi|Gi|Ti)?")
_UNITS = {None: 0, "Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40}
_HOST = re.compile(r"[\w.*\[\]-]+(:[\w.*:\[\]]+)?")
_NAMESPACE = re.compile(r"[a-z0-9*-]{1,63}")


@dataclass(frozen=True, slots=True)
class _Declared:
    """An option as it was declared; `attributes` are those of `click.option`."""

    flags: tuple[str, ...]
    attributes: Mapping[str, Any]
    read: Callable[[Any], Any] | None
    alone: bool

    def option(self, name: str) -> Callable[[Command], Command]:
        """Return the decorator that adds the option to a command, as the argument `name`."""
        read = self.read
        attributes = dict(self.attributes)
        if read is not None:
            attributes["callback"] = lambda _context, _parameter, value: read(value)
        return click.option(*self.flags, name, **attributes)


def setting(
    *flags: str,
    read: Callable[[Any], Any] | None = None,
    unset: Callable[[], Any] | None = None,
    alone: bool = False,
    **attributes: Any,
) -> Any:
    """Declare an option as a field of a dataclass; `attributes` are those of `click.option`.

    `unset` creates the value of a field that is not given to the class, if that differs from the default of the
    command line. `alone`: the option does not exist in a program whose class includes this one (`settings_of`);
    defaults to False.
    """
    if unset is None:
        empty: Any = False if attributes.get("is_flag") else () if attributes.get("multiple") else None
        default = attributes.get("default", empty)
        convert = read

        def unset() -> Any:
            return default if convert is None else convert(default)

    return field(default_factory=unset, metadata={_DECLARED: _Declared(flags, attributes, read, alone)})


def settings_of(kind: type[T]) -> Any:
    """Declare that the options of another class belong to this program as well, as the value of this field."""
    return field(default_factory=kind, metadata={_NESTED: kind})


def options_of(kind: type[T]) -> Callable[[Command], Command]:
    """Add the options of a class to a command, whose function gets an object of the class as `options`."""

    def decorate(function: Command) -> Command:
        @wraps(function)
        def command(**values: Any) -> None:
            options = _created(kind, values)
            function(options=options, **values)

        decorated: Command = command
        for option in reversed(list(_options(kind))):
            decorated = option(decorated)
        return decorated

    return decorate


def option_of(kind: type[Any], name: str) -> Callable[[Command], Command]:
    """Add a single option of a class to a command that does not use the whole class, as the argument `name`."""
    declared: _Declared = next(each for each in fields(kind) if each.name == name).metadata[_DECLARED]
    return declared.option(name)


def _options(kind: type[Any], *, nested: bool = False) -> Iterator[Callable[[Command], Command]]:
    for each in fields(kind):
        if _NESTED in each.metadata:
            yield from _options(each.metadata[_NESTED], nested=True)
        elif (declared := each.metadata.get(_DECLARED)) is not None and not (nested and declared.alone):
            yield declared.option(each.name)


def _created(kind: type[T], values: dict[str, Any], *, nested: bool = False) -> T:
    """Create an object from values of the command line, and remove these from `values`."""
    given: dict[str, Any] = {}
    for each in fields(kind):  # type: ignore[arg-type]
        if _NESTED in each.metadata:
            given[each.name] = _created(each.metadata[_NESTED], values, nested=True)
        elif (declared := each.metadata.get(_DECLARED)) is not None and not (nested and declared.alone):
            given[each.name] = values.pop(each.name)
    return kind(**given)


def address(value: str) -> str:
    """Parse an address to listen on, such as `:8080`."""
    try:
        split_address(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return value


def _nothing() -> None:
    return None


def address_setting(flag: str, *, default: str, help: str, alone: bool = False) -> Any:  # noqa: A002 - as click has it
    """Declare an option for an address to listen on.

    `default` is that of the command line. In an object that is created directly, the address defaults to None: the
    program does not listen there.
    """
    return setting(flag, default=default, metavar="HOST:PORT", read=address, unset=_nothing, alone=alone, help=help)


def metrics_auth_setting(*, alone: bool = False) -> Any:
    """Declare the option --metrics-auth. Defaults to `token`."""
    return setting(
        "--metrics-auth",
        type=click.Choice(["token", "none"]),
        default="token",
        alone=alone,
        help="Who may read /metrics: bearer tokens of accounts that RBAC allows it, or everyone.",
    )


def patterns(values: tuple[str, ...]) -> tuple[str, ...]:
    """Parse patterns of hosts, such as `github.com,*.example.com:8443`."""
    found = tuple(part.strip() for value in values for part in value.split(",") if part.strip())
    for pattern in found:
        if not _HOST.fullmatch(pattern):
            raise click.BadParameter(f"{pattern!r} is not host[:port]; * stands for any characters")
    return found


def hosts(values: tuple[str, ...]) -> tuple[str, ...]:
    """Parse hosts, such as `git.example.com,localhost:3000`."""
    found = tuple(part.strip().lower() for value in values for part in value.split(",") if part.strip())
    for host in found:
        if "*" in host or not _HOST.fullmatch(host):
            raise click.BadParameter(f"{host!r} is not host[:port]")
    return found


def namespace_patterns(value: str) -> tuple[str, ...]:
    """Parse patterns of namespaces, such as `team-*,prod`."""
    found = tuple(pattern.strip() for pattern in value.split(",") if pattern.strip())
    for pattern in found:
        if not _NAMESPACE.fullmatch(pattern):
            raise click.BadParameter(f"{pattern!r} is no name of a namespace, in which * stands for any characters")
    return found


def seconds(value: str) -> float:
    """Parse a duration above zero, such as `1h`, to seconds."""
    try:
        found = parse_duration(value).total_seconds()
    except DurationError as error:
        raise click.BadParameter(str(error)) from None
    if found <= 0:
        raise click.BadParameter("must be longer than nothing")
    return found


def interval(value: str) -> float:
    """Parse an interval, such as `5m`, to seconds; `0` stands for never."""
    try:
        return 0.0 if value == "0" else parse_duration(value).total_seconds()
    except DurationError as error:
        raise click.BadParameter(str(error)) from None


def size(value: str) -> int:
    """Parse a size, such as `3Gi`, to bytes."""
    found = _SIZE.fullmatch(value)
    if found is None or not int(found[1]):
        raise click.BadParameter("must be a number of bytes, or of Ki, Mi, Gi or Ti")
    return int(found[1]) << _UNITS[found[2]]
