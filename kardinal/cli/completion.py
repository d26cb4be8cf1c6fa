"""`kardinal completion`, and shell completion of the names of Pipelines, Bundles and environments."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping

import click
from click.shell_completion import CompletionItem, get_completion_class

from kardinal.cli.errors import CommandError
from kardinal.cli.lazy import LazyGroup
from kardinal.cli.output import say
from kardinal.cli.session import Session, connect
from kardinal.objects.errors import KardinalError
from kardinal.promotion.api.names import LABEL_PIPELINE, label_value
from kardinal.promotion.kinds import BUNDLE, PIPELINE

__all__ = ["complete_names", "completion"]

_VARIABLE = "_KARDINAL_COMPLETE"
_DEADLINE = 3.0
"""The deadline in seconds for a completion by the API server."""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes commands in a shell.

    For this shell: `source <(kardinal completion bash)`, the same with zsh, and `kardinal completion fish | source`.
    """
    made = get_completion_class(shell)
    if made is None:
        raise CommandError(f"{shell} is not known")
    root = click.get_current_context().find_root().command
    try:
        say(made(root, {}, "kardinal", _VARIABLE).source())
    except RuntimeError as error:
        raise CommandError(str(error)) from None


def complete_names(command: click.Command) -> None:
    """Complete the parameters of a command that name objects, with names from the API server.

    Without an answer of the API server within the deadline, nothing is completed.
    """
    for found in _commands(command):
        for parameter in found.params:
            source = _SOURCES.get(parameter.name or "")
            if found.name == "pipelines" and parameter.name == "name":
                source = _pipelines
            if source is not None and parameter.type is click.STRING:
                parameter._custom_shell_complete = _completer(source)


def _commands(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, LazyGroup):
        context = click.Context(command)
        yield from filter(None, (command.get_command(context, name) for name in command.list_commands(context)))
    elif isinstance(command, click.Group):
        for nested in command.commands.values():
            yield from _commands(nested)


Source = Callable[[Session, Mapping[str, str]], Awaitable[list[str]]]


def _completer(source: Source) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        given = {name: value for name, value in context.params.items() if isinstance(value, str)}

        async def ask() -> list[str]:
            async with (
                asyncio.timeout(_DEADLINE),
                connect(context.params.get("kubeconfig"), given.get("context"), given.get("namespace")) as session,
            ):
                return await source(session, given)

        try:
            names = asyncio.run(ask())
        except (KardinalError, TimeoutError, OSError):
            return []
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]

    return complete


async def _pipelines(session: Session, given: Mapping[str, str]) -> list[str]:
    return [item["metadata"]["name"] for item in (await session.client.list(PIPELINE, session.namespace)).items]


async def _bundles(session: Session, given: Mapping[str, str]) -> list[str]:
    labels = f"{LABEL_PIPELINE}={label_value(given['pipeline'])}" if "pipeline" in given else None
    return [
        item["metadata"]["name"] for item in (await session.client.list(BUNDLE, session.namespace, labels=labels)).items
    ]


async def _environments(session: Session, given: Mapping[str, str]) -> list[str]:
    pipelines = (await session.client.list(PIPELINE, session.namespace)).items
    chosen = [item for item in pipelines if given.get("pipeline") in (None, item["metadata"]["name"])]
    return list(dict.fromkeys(entry["name"] for item in chosen for entry in item["spec"].get("environments", ())))


_SOURCES: Mapping[str, Source] = {
    "pipeline": _pipelines,
    "bundle": _bundles,
    "first": _bundles,
    "second": _bundles,
    "name": _bundles,
    "environment": _environments,
    "target": _environments,
    "skips": _environments,
}
"""The functions that list the possible values of a parameter, by the name of the parameter."""
