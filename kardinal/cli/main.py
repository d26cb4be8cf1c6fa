"""The entry point `kardinal`, with the declarations of its commands.

A command is imported when it is called; `kardinal --help` imports none of them.

Other packages declare commands by entry points of the group `kardinal.commands`:

    [project.entry-points."kardinal.commands"]
    local = "kardinal_local.commands:LOCAL"

An entry point whose package is not installed is ignored, because the container images have the metadata of the whole
project, but not all of its packages.

Exit codes: 0 done, 1 failed, 2 called wrongly.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec

import click

from kardinal.cli.lazy import LazyCommand, LazyGroup
from kardinal.cli.styles import visible
from kardinal.objects.suggestions import nearest

__all__ = ["main"]

_OWN = {
    command.name: command
    for command in (
        LazyCommand(
            "init",
            "kardinal.cli.init:init",
            "Create a Pipeline from a short description, or print one for a repository.",
        ),
        LazyCommand("get", "kardinal.cli.get:get", "Show Pipelines, Bundles or the steps of a promotion."),
        LazyCommand(
            "status",
            "kardinal.cli.status.command:status",
            "Show where a Pipeline stands, what holds it, and what to type next.",
        ),
        LazyCommand("watch", "kardinal.cli.status.command:watch", "Follow a Pipeline: `kardinal status --watch`."),
        LazyCommand("create", "kardinal.cli.create:create", "Create a resource."),
        LazyCommand(
            "promote",
            "kardinal.cli.promote:promote",
            "Promote a Bundle to an environment, before all Bundles that were created until now.",
        ),
        LazyCommand("retry", "kardinal.cli.promote:retry", "Try a Bundle again in an environment where it is Failed."),
        LazyCommand("approve", "kardinal.cli.approve:approve", "Let a Bundle through a gate that reads approvals."),
        LazyCommand(
            "rollback",
            "kardinal.cli.rollback:rollback",
            "Bring an environment back to what was Verified there before.",
        ),
        LazyCommand(
            "explain",
            "kardinal.cli.explain:explain",
            "Show what holds, or held, a Bundle before an environment; of graph/NAME what its nodes wait for.",
        ),
        LazyCommand(
            "history",
            "kardinal.cli.history:history",
            "List the promotions of a Pipeline, newest first, with who let them through and how long they took.",
        ),
        LazyCommand(
            "diff",
            "kardinal.cli.diff:diff",
            "Show the artifacts, the provenance and the commits in which two Bundles differ.",
        ),
        LazyCommand(
            "lint",
            "kardinal.cli.lint:lint",
            "Check the resources of kardinal in files as the controller would.",
        ),
        LazyCommand("export", "kardinal.cli.export:export", "Draw a Graph for Mermaid, Graphviz or a program."),
        LazyCommand(
            "catalog",
            "kardinal.cli.catalog.group:catalog",
            "Compile catalogs: what a cluster applies, from a hierarchy of configuration in Git repositories.",
        ),
        LazyCommand("cel", "kardinal.cli.cel:evaluate", "Evaluate a CEL expression on the data of a file."),
        LazyCommand("plan", "kardinal.cli.plan:plan", "Show what a promotion would change, and change nothing."),
        LazyCommand("policy", "kardinal.cli.policy:policy", "Show what gates hold, and what they would say."),
        LazyCommand("pause", "kardinal.cli.pause:pause", "Hold every promotion of a Pipeline at its next safe point."),
        LazyCommand(
            "resume",
            "kardinal.cli.pause:resume",
            "Let the promotions of a paused Pipeline, or to a held environment, go on.",
        ),
        LazyCommand("pr", "kardinal.cli.pr:pr", "List, show, merge or close the pull requests of a local repository."),
        LazyCommand(
            "completion", "kardinal.cli.completion:completion", "Print the script that completes commands in a shell."
        ),
        LazyCommand(
            "version",
            "kardinal.cli.version:version",
            "Print the versions of this command and of the programs it talks to.",
        ),
    )
}

_GROUP = "kardinal.commands"

COMPLETING = "_KARDINAL_COMPLETE"
"""The environment variable that is set when the shell script of `kardinal completion` requests completions."""


class _Group(LazyGroup):
    def declared(self) -> Mapping[str, LazyCommand]:
        return _declared()

    def find(self, name: str) -> LazyCommand | None:
        return _OWN.get(name) or _declared().get(name)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            raise _with_near_options(error) from None
        except click.UsageError as error:
            # The message quotes arguments, which may be file names with control characters that a shell has expanded.
            message = error.format_message()
            if visible(message) == message:
                raise
            raise click.UsageError(visible(message), error.ctx) from None

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = super().get_command(ctx, cmd_name)
        if found is not None and COMPLETING in os.environ:
            from kardinal.cli.completion import complete_names  # noqa: PLC0415 - asks an API server, which few do

            complete_names(found)
        return found


def _with_near_options(error: click.NoSuchOption) -> click.UsageError:
    """Return the error of an unknown option, which suggests only options with a similar name.

    click compares the dashes as well, and so suggests --namespace for --message.
    """
    typed = error.option_name.lstrip("-")
    near = [option for option in error.possibilities or () if nearest(typed, [option.lstrip("-")], cutoff=0.75)]
    return click.UsageError(
        visible(click.NoSuchOption(error.option_name, possibilities=near, ctx=error.ctx).format_message()), error.ctx
    )


def _declared() -> dict[str, LazyCommand]:
    """Return the declarations of all commands by name: the commands of this package first.

    Raises `click.ClickException` for an entry point that is not a `LazyCommand`.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 - reads what is installed: 30 ms

    added = {}
    for entry in entry_points(group=_GROUP):
        if find_spec(entry.module.partition(".")[0]) is not None:
            command = entry.load()
            if not isinstance(command, LazyCommand):
                raise click.ClickException(f"the entry point {entry.name} of {_GROUP} is not a LazyCommand")
            added[entry.name] = command
    return {**_OWN, **dict(sorted(added.items()))}


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="kardinal", message="kardinal %(version)s")
def main() -> None:
    """Promote versioned artifacts through environments by Git, policy and health.

    Start with `kardinal demo`, which needs no cluster. Exit codes: 0 done, 1 failed, 2 called wrongly.
    """
