"""The options, the API client and the error messages of all commands that need an API server."""

from __future__ import annotations

import asyncio
import getpass
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import click

from kardinal.cli.errors import CommandError
from kardinal.kube import ApiError, Client, ConfigError, Forbidden, KubeError, NotFound, Unauthorized, load_connection
from kardinal.objects.errors import KardinalError
from kardinal.promotion.views.api_reader import ApiReader

if TYPE_CHECKING:
    from kardinal.promotion.api import Bundle, Pipeline
    from kardinal.promotion.requests import Requester

__all__ = [
    "TABLES",
    "Session",
    "chosen_namespace",
    "cluster_command",
    "cluster_options",
    "connect",
    "explained",
    "is_unknown_kind",
    "output_option",
    "policy_namespaces_option",
    "table_option",
]

P = ParamSpec("P")

TABLES = ("table", "wide")
"""The values of `--output` that print a table."""

_ENDS_WITH_REMEDY = (
    "Is the API server running? Check KUBECONFIG, or start one on this machine: kardinal local up --simulate"
)


@dataclass(frozen=True, slots=True)
class Session:
    """The API client and the namespace of a command; `chosen`: the namespace was named by -n."""

    client: Client
    namespace: str
    chosen: bool = False

    @property
    def option(self) -> str:
        """Return the option to append to a suggested command: ` -n team-a`, or empty if -n was not given."""
        return f" -n {self.namespace}" if self.chosen else ""

    @property
    def reader(self) -> ApiReader:
        """Return the reader for views, which has the permissions of the user."""
        return ApiReader(self.client)

    @property
    def requester(self) -> Requester:
        """Return the user of this machine as the person who makes requests."""
        from kardinal.promotion.requests import Requester  # noqa: PLC0415 - as below

        return Requester(client=self.client, namespace=self.namespace, by=getpass.getuser(), option=self.option)

    async def pipeline(self, name: str) -> Pipeline:
        """Return a Pipeline. Raises `NotThere`, with the names of the existing Pipelines in the remedy."""
        from kardinal.promotion.views.reading import find_pipeline  # noqa: PLC0415 - it takes a third of the time of a command that needs no model

        return await find_pipeline(self.reader, self.namespace, name)

    async def bundles(self, pipeline: str) -> list[Bundle]:
        """Return the Bundles of a Pipeline, newest first."""
        from kardinal.promotion.views.reading import bundles_of  # noqa: PLC0415 - as above

        return await bundles_of(self.reader, self.namespace, pipeline)

    async def bundle(self, pipeline: str, name: str | None) -> Bundle:
        """Return the Bundle called `name`. Raises `NotThere` if there is none.

        If `name` is None: the newest Bundle that has not ended, else the newest Bundle.
        """
        from kardinal.promotion.views.reading import find_bundle  # noqa: PLC0415 - as above

        return await find_bundle(self.reader, self.namespace, pipeline, name)


@asynccontextmanager
async def connect(kubeconfig: Path | None, context: str | None, namespace: str | None) -> AsyncIterator[Session]:
    connection = await load_connection(kubeconfig or await asyncio.to_thread(_kubeconfig_of_plane), context)
    async with Client(connection, user_agent="kardinal-cli") as client:
        yield Session(client, namespace or connection.namespace or "default", chosen=namespace is not None)


async def chosen_namespace(*, kubeconfig: Path | None, context: str | None, namespace: str | None) -> str:
    """Return the namespace of a command without a request to the API server; `default` without a kubeconfig."""
    if namespace is not None:
        return namespace
    try:
        connection = await load_connection(kubeconfig or await asyncio.to_thread(_kubeconfig_of_plane), context)
    except KubeError:
        return "default"
    return connection.namespace or "default"


def _kubeconfig_of_plane() -> Path | None:
    """Return the kubeconfig that `kardinal local up` writes by default, if it exists.

    None if another kubeconfig takes precedence: KUBECONFIG, `~/.kube/config`, or the service account of a pod.
    """
    chosen = os.environ.get("KUBECONFIG") or os.environ.get("KUBERNETES_SERVICE_HOST")
    if chosen or (Path.home() / ".kube" / "config").is_file():
        return None
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    found = Path(state) / "kardinal" / "local" / "kubeconfig"
    return found if found.is_file() else None


def cluster_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options --kubeconfig, --context and --namespace."""
    for option in (
        click.option(
            "--kubeconfig",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Path of the kubeconfig; default: KUBECONFIG, ~/.kube/config, or that of `kardinal local up`.",
        ),
        click.option("--context", help="Context of the kubeconfig; default: its current one."),
        click.option("-n", "--namespace", help="Namespace to work in; default: the one of the context."),
    ):
        function = option(function)
    return function


def cluster_command(
    function: Callable[Concatenate[Session, P], Awaitable[None]],
) -> Callable[P, None]:
    """Turn `async def command(session, …)` into a click callback with -n, --context and --kubeconfig.

    A `KardinalError` of the command becomes a `CommandError`, Ctrl-C exit code 130.
    """

    @cluster_options
    @wraps(function)
    def command(*args: P.args, **kwargs: P.kwargs) -> None:
        options: dict[str, Any] = kwargs
        where = (options.pop("kubeconfig"), options.pop("context"), options.pop("namespace"))

        async def run() -> None:
            async with connect(*where) as session:
                await function(session, *args, **kwargs)

        try:
            asyncio.run(run())
        except KubeError as error:
            raise explained(error) from error
        except KardinalError as error:
            raise CommandError(error.message, remedy=error.remedy) from error
        except KeyboardInterrupt:
            raise click.exceptions.Exit(130) from None

    return command


def output_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "json", "yaml"]),
        default="table",
        show_default=True,
        help="How to print the result.",
    )(function)


def policy_namespaces_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--policy-namespaces",
        default="platform-policies",
        show_default=True,
        help="Where org gates live, with commas between; what the controller was started with.",
    )(function)


def table_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option --output with `table`, `wide` (a table with a column MESSAGE), `json` and `yaml`."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice([*TABLES, "json", "yaml"]),
        default="table",
        show_default=True,
        help="How to print the result; wide: with messages.",
    )(function)


def explained(error: KubeError) -> CommandError:
    match error:
        case ConfigError():
            return CommandError(str(error))
        case Unauthorized():
            return CommandError(
                "the API server does not accept these credentials", remedy="Check KUBECONFIG and --context."
            )
        case Forbidden():
            return CommandError(error.message, remedy="Ask for a role that allows it, or choose another --context.")
        case NotFound() if is_unknown_kind(error):
            return CommandError(
                "this cluster does not know kardinal's resources", remedy="Install them: kubectl apply -f crds/"
            )
        case ApiError():
            return CommandError(error.message)
        case _:
            return CommandError(f"the API server cannot be reached: {error}", remedy=_ENDS_WITH_REMEDY)


def is_unknown_kind(error: NotFound) -> bool:
    """Return whether the API server does not serve the kind; for an unknown group it answers without a reason."""
    return not error.reason or "could not find the requested resource" in error.message
