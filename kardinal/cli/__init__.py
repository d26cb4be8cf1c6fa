"""The `kardinal` command line, with one module or package per command.

A command reads objects, computes a view (`kardinal.promotion.views`), and prints it:

    @click.command()
    @click.argument("pipeline")
    @cluster_command
    async def command(session: Session, *, pipeline: str) -> None:
        objects = await read_objects(session.reader, session.namespace, pipeline)
        say(status_view(objects, now=datetime.now(UTC)).phase)

main                    the entry point, with the list of all commands; `lazy` imports a command when it is called
session                 the options for the API server, the API client, and the messages of its errors
output, styles, table   printing: control characters, colours, the width of tables, JSON and YAML
errors                  `CommandError`: exit code 1 with a remedy
changes                 watches, for commands that print again after each change
checkout                Git repositories, read by the user's git or from clones
files, manifests        files on the command line, with limits on their size
plans, planning         the plan of a Bundle, for `plan` and `create bundle --dry-run`
requests, holds         writes that several commands share
scan, guesses           `init --from`: Pipelines guessed from a repository

The other modules have the name of their command.
"""
