"""The options, the client and the errors of every command that talks to an API server."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import click

from kardinal.api.names import LABEL_PIPELINE, label_value
from kardinal.cli.errors import CommandError
from kardinal.kube import ApiError, Client, ConfigError, Forbidden, KubeError, NotFound, Unauthorized, load_connection
from kardinal.objects import BUNDLE, PIPELINE, JsonObject

if TYPE_CHECKING:
    from kardinal.api import Bundle, Pipeline

__all__ = [
    "TABLES",
    "Session",
    "chosen_namespace",
    "cluster_command",
    "cluster_options",
    "connect",
    "explained",
    "newest_first",
    "no_bundle",
    "output_option",
    "table_option",
    "unknown_bundle",
]

P = ParamSpec("P")

TABLES = ("table", "wide")
"""The outputs that are tables."""

_ENDS_WITH_REMEDY = (
    "Is the API server running? Check KUBECONFIG, or start one on this machine: kardinal local up --simulate"
)


@dataclass(frozen=True, slots=True)
class Session:
    """A client and the namespace the command works in; `chosen` says that the caller named it."""

    client: Client
    namespace: str
    chosen: bool = False

    @property
    def option(self) -> str:
        """Return the option that chooses this namespace, for a command that is shown; empty where none is needed."""
        return f" -n {self.namespace}" if self.chosen else ""

    async def pipeline(self, name: str) -> Pipeline:
        """Return a Pipeline; one that does not exist is an error that names those that do."""
        from kardinal.api import Pipeline  # noqa: PLC0415 - a third of the time of a command that needs no model

        return Pipeline.model_validate(await self.stored_pipeline(name))

    async def stored_pipeline(self, name: str) -> JsonObject:
        """Return a Pipeline as the API server has it."""
        try:
            return await self.client.get(PIPELINE, name, self.namespace)
        except NotFound as error:
            known = [item["metadata"]["name"] for item in (await self.client.list(PIPELINE, self.namespace)).items]
            remedy = f"There are: {', '.join(known)}" if known else "Create one: kardinal init -f kardinal.yaml"
            raise CommandError(f"no Pipeline {name} in namespace {self.namespace}", remedy=remedy) from error

    async def bundles(self, pipeline: str) -> list[Bundle]:
        """Return the Bundles of a Pipeline, newest first."""
        from kardinal.api import Bundle  # noqa: PLC0415 - as above

        found = await self.client.list(BUNDLE, self.namespace, labels=f"{LABEL_PIPELINE}={label_value(pipeline)}")
        return newest_first(Bundle.model_validate(item) for item in found.items)

    async def bundle(self, pipeline: str, name: str | None) -> Bundle:
        """Return the Bundle called `name`, else the one that is under way, else the newest."""
        bundles = await self.bundles(pipeline)
        if name is not None:
            for bundle in bundles:
                if bundle.metadata.name == name:
                    return bundle
            raise unknown_bundle(pipeline, name)
        if not bundles:
            raise no_bundle(pipeline)
        under_way = [bundle for bundle in bundles if not bundle.status.has_ended]
        return (under_way or bundles)[0]


def no_bundle(pipeline: str) -> CommandError:
    return CommandError(
        f"Pipeline {pipeline} has no Bundle yet",
        remedy=f"Create one: kardinal create bundle {pipeline} --image REPOSITORY:TAG",
    )


def unknown_bundle(pipeline: str, name: str) -> CommandError:
    return CommandError(
        f"Pipeline {pipeline} has no Bundle {name}", remedy=f"List them: kardinal get bundles {pipeline}"
    )


def newest_first(bundles: Any) -> list[Bundle]:
    """Return Bundles in one order everywhere; those of one second by their admission, new ones first."""

    def age(bundle: Bundle) -> tuple[float, float, str]:
        created, sequence = bundle.metadata.creation_timestamp, bundle.status.sequence
        return created.timestamp() if created else 0.0, sequence or math.inf, bundle.metadata.name

    return sorted(bundles, key=age, reverse=True)


@asynccontextmanager
async def connect(kubeconfig: Path | None, context: str | None, namespace: str | None) -> AsyncIterator[Session]:
    connection = await load_connection(kubeconfig or await asyncio.to_thread(_kubeconfig_of_plane), context)
    async with Client(connection, user_agent="kardinal-cli") as client:
        yield Session(client, namespace or connection.namespace or "default", chosen=namespace is not None)


async def chosen_namespace(*, kubeconfig: Path | None, context: str | None, namespace: str | None) -> str:
    """Return the namespace that a command would work in, without asking a server; `default` without a kubeconfig."""
    if namespace is not None:
        return namespace
    try:
        connection = await load_connection(kubeconfig or await asyncio.to_thread(_kubeconfig_of_plane), context)
    except KubeError:
        return "default"
    return connection.namespace or "default"


def _kubeconfig_of_plane() -> Path | None:
    """Return that of `kardinal local up` at its default place, where no other kubeconfig is chosen."""
    chosen = os.environ.get("KUBECONFIG") or os.environ.get("KUBERNETES_SERVICE_HOST")
    if chosen or (Path.home() / ".kube" / "config").is_file():
        return None
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    found = Path(state) / "kardinal" / "local" / "kubeconfig"
    return found if found.is_file() else None


def cluster_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that choose an API server and a namespace."""
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
    """Turn `async def command(session, …)` into a click callback with -n, --context and --kubeconfig."""

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


def table_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option of a command that prints a table; `wide` is one with a column MESSAGE."""
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
        # Where the whole group is unknown, the answer is plain text and gives no reason.
        case NotFound() if not error.reason or "could not find the requested resource" in error.message:
            return CommandError(
                "this cluster does not know kardinal's resources", remedy="Install them: kubectl apply -f crds/"
            )
        case ApiError():
            return CommandError(error.message)
        case _:
            return CommandError(f"the API server cannot be reached: {error}", remedy=_ENDS_WITH_REMEDY)
