"""Write the CLI reference from the CLI itself: `python -m hack.docs.cli_reference docs/cli.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from kardinal.cli.main import main

INTRODUCTION = """\
# The command line

Generated from the commands themselves by `make docs`.

Exit codes: 0 done, 1 failed (the message says what to do next), 2 called wrongly. `NO_COLOR` turns colour off;
`KUBECONFIG` names the kubeconfig where `--kubeconfig` does not.
"""

WIDTH = 100
"""The width of the help texts in columns, which does not depend on the terminal."""


def reference() -> str:
    """Return the page `docs/cli.md`."""
    context = click.Context(main, info_name="kardinal", terminal_width=WIDTH, **main.context_settings)
    return INTRODUCTION + "".join(_sections(main, context))


def _sections(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"\n## {context.command_path}\n\n```\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            nested = command.get_command(context, name)
            if nested is not None:
                yield from _sections(
                    nested, click.Context(nested, info_name=name, parent=context, terminal_width=WIDTH)
                )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference())
