"""Choose the template of a resource for an owner: the one that it names, or the one option whose selector wins."""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.objects import JsonObject
from kardinal.objects.errors import KardinalError
from kardinal_supplychain.api.blueprints import TemplateOption, TemplateReference
from kardinal_supplychain.blueprints.select import OwnerSelector, SelectorVerdict, judge, winners

__all__ = ["NoOption", "OptionFailed", "chosen_option", "option_name", "verdicts"]


class NoOption(KardinalError):
    """Not exactly one option matches."""


class OptionFailed(KardinalError):
    """An option whose selector cannot be evaluated."""


def verdicts(options: Sequence[TemplateOption], owner: JsonObject) -> tuple[SelectorVerdict, ...]:
    """Return the verdict of each option on an owner."""
    return tuple(judge(OwnerSelector.of_option(option.selector), owner) for option in options)


def chosen_option(reference: TemplateReference, owner: JsonObject, *, place: str) -> TemplateOption | None:
    """Return the option for an owner; None if the reference names its template.

    `place` says where it stands, such as `resource [image] in supply chain [web]`. Raises `NoOption`, and
    `OptionFailed` if a requirement of an option cannot be evaluated.
    """
    if reference.options is None:
        return None
    judged = verdicts(reference.options, owner)
    for option, verdict in zip(reference.options, judged, strict=True):
        if verdict.failing and verdict.failing.error:
            raise OptionFailed(
                f"error matching against template option [{option_name(option)}] for {place}: "
                f"{verdict.failing.requirement}: {verdict.failing.error}"
            )
    won = [reference.options[index] for index in winners(judged)]
    if len(won) != 1:
        names = ", ".join(map(option_name, won))
        raise NoOption(f"expected exactly 1 option to match, found [{len(won)}] matching options [{names}] for {place}")
    return won[0]


def option_name(option: TemplateOption) -> str:
    """Return the name of an option's template, or of the input that it passes through."""
    return option.name or option.pass_through or ""
