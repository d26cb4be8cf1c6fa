"""`kardinal local`: run an API server and all programs of kardinal on this machine."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson
from click.core import ParameterSource

from kardinal.cli.errors import CommandError
from kardinal.cli.output import say
from kardinal.cli.ranges import WholeNumber
from kardinal.runtime.logging import configure
from kardinal.runtime.options import option_of
from kardinal.runtime.process import run
from kardinal_agent.options import AgentOptions
from kardinal_local import plane as local_plane
from kardinal_local.serving import PlaneOptions, default_directory, run_plane
from kardinal_local.signals import stop_signals

if TYPE_CHECKING:
    from kardinal_local.stack import Programs

__all__ = ["local"]

_PLACES = (
    ("API server", "server", ""),
    ("webhook", "api", "/api/v1/bundles"),
    ("metrics", "metrics", "/metrics"),
    ("health", "probes", "/readyz"),
    ("chains", "chain_metrics", "/metrics"),
)
"""The servers of a plane: the name for people, the key in `endpoints.json`, and the path of the URL."""

DOWN_ATTEMPTS = 700
DOWN_PAUSE = 0.05
"""The pause in seconds between two attempts of `down` to see the process end: all attempts take 35 s."""


class _Directory(click.Path):
    """A parameter type for the directory of a plane, which may not exist yet; an unusable path is a usage error."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        try:
            local_plane.holder(path)
        except OSError as error:
            self.fail(f"{path} cannot be used: {error.strerror}", param, ctx)
        return path


@click.group()
def local() -> None:
    """Run kardinal on this machine, without a cluster. For trying, testing and single-node use."""


def _directory_option(function: Callable[..., None]) -> Callable[..., None]:
    return click.option(
        "--dir",
        "directory",
        type=_Directory(file_okay=False, resolve_path=True, path_type=Path),
        default=default_directory,
        show_default="$XDG_STATE_HOME/kardinal/local",
        help="Where its data, keys and kubeconfig live.",
    )(function)


@local.command()
@_directory_option
@click.option("--port", type=WholeNumber(0, 65535), help="Port of the API server; 0 takes a free one.")
@click.option("--only", type=click.Choice(["plane"]), help="Start the API server alone, with no kind of kardinal's.")
@click.option("--simulate", is_flag=True, help="Stand in for a GitOps tool and a kubelet.")
@click.option("--durable", is_flag=True, help="Answer no write before it would survive a power failure.")
@click.option(
    "--chaos",
    type=int,
    metavar="SEED",
    help="Trouble programs as a bad day would: conflicts, refusals, lost connections, late events.",
)
@click.option(
    "--allow-bypassing-hooks", is_flag=True, help="Change repositories that have hooks, which do not run then."
)
@option_of(AgentOptions, "scm_poll_interval")
@click.option("--supply-chains", is_flag=True, help="Stamp what supply chains and deliveries say, as well.")
@click.option(
    "--ytt",
    type=click.Path(dir_okay=False, exists=True, resolve_path=True, path_type=Path),
    help="The program ytt, for templates of supply chains with spec.ytt. Default: the one in PATH.",
)
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="warning")
def up(
    *,
    directory: Path,
    port: int | None,
    only: str | None,
    simulate: bool,
    durable: bool,
    chaos: int | None,
    allow_bypassing_hooks: bool,
    scm_poll_interval: float,
    supply_chains: bool,
    ytt: Path | None,
    log_level: str,
) -> None:
    """Start in the foreground; ends cleanly with Ctrl-C."""
    programs: dict[str, Any] = {
        "simulate": simulate,
        "allow_bypassing_hooks": allow_bypassing_hooks,
        "scm_poll_interval": scm_poll_interval,
        "supply_chains": supply_chains,
        "ytt": ytt,
    }
    given = [name for name in programs if _is_given(name)]
    if only and given:
        raise click.UsageError(f"--{given[0].replace('_', '-')} needs the controllers: leave out --only plane")
    if ytt is not None and not supply_chains:
        raise click.UsageError("--ytt is for supply chains: add --supply-chains")
    configure(level=log_level)
    options = PlaneOptions(port=port, durable=durable, chaos=chaos)
    serving = _serve_plane(directory, options) if only else _serve_all(directory, options, **programs)
    # A start creates hardly any garbage, and collections would take a tenth of its time.
    gc.disable()
    try:
        run(serving)
    except local_plane.LocalPlaneError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{error.filename or directory} cannot be used: {error.strerror or error}") from error
    finally:
        gc.enable()


def _is_given(option: str) -> bool:
    """Return whether an option was given on the command line, and is not its default."""
    return click.get_current_context().get_parameter_source(option) is ParameterSource.COMMANDLINE


async def _serve_plane(directory: Path, options: PlaneOptions) -> None:
    with stop_signals() as stopped:
        async with run_plane(directory, options) as plane:
            await _announce(plane, {"server": plane.url}, stopped)


async def _serve_all(directory: Path, options: PlaneOptions, *, simulate: bool, **programs: Any) -> None:
    with stop_signals() as stopped:
        async with run_plane(directory, options, hold=True) as plane:
            run_programs = await asyncio.to_thread(_import_programs)
            async with run_programs(plane, directory, simulate=simulate, **programs) as running:
                notes = [f"{'web page':<12} {running.page.link()}"]
                if simulate:
                    notes.append("simulator    stands in for a GitOps tool and a kubelet: no pods run")
                await _announce(plane, running.endpoints.to_json(), stopped, notes)


def _import_programs() -> Callable[..., AbstractAsyncContextManager[Programs]]:
    """Import `run_programs`, which takes most of the time of a start.

    It is imported after the plane has started, so that the plane locks its directory at once.
    """
    from kardinal_local.stack import run_programs  # noqa: PLC0415

    return run_programs


def _print_places(kubeconfig: Path, endpoints: Mapping[str, str]) -> None:
    """Print the environment variables to export, and the URL of each server, for `up` and `status`."""
    say(f"export KUBECONFIG={kubeconfig}")
    if "api" in endpoints:
        say(f"export KARDINAL_URL={endpoints['api']}")
    for name, key, path in _PLACES:
        if key in endpoints:
            say(f"{name:<12} {endpoints[key]}{path}")


async def _announce(
    plane: local_plane.LocalPlane, endpoints: Mapping[str, str], stopped: asyncio.Event, notes: Sequence[str] = ()
) -> None:
    """Print the URLs of the servers, and wait until `stopped` is set."""
    _print_places(plane.kubeconfig, endpoints)
    for note in notes:
        say(note)
    say("ready; stop with Ctrl-C")
    # The objects that a start has created live as long as the process. A full collection that visits them blocks the
    # event loop for 25 ms, and with the controllers for 100 ms. With frozen objects it takes less than 1 ms.
    gc.freeze()
    gc.enable()
    await stopped.wait()
    say("stopping", err=True)


@local.command()
@_directory_option
def down(*, directory: Path) -> None:
    """Stop what `kardinal local up` runs on a directory, and wait for its end."""
    process = local_plane.holder(directory)
    if process is None:
        say(f"nothing runs on {directory}")
        return
    os.kill(process, signal.SIGTERM)
    _await_release(directory, process)
    say(f"stopped process {process}")


def _await_release(directory: Path, process: int) -> None:
    """Wait until a process has released its directory. Raises `CommandError` after 35 s.

    It polls, because there is no event for the end of a process that is not a child.
    """
    for _ in range(DOWN_ATTEMPTS):
        if local_plane.holder(directory) is None:
            return
        time.sleep(DOWN_PAUSE)
    raise CommandError(f"process {process} has not ended yet", remedy=f"End it: kill -9 {process}")


@local.command()
@_directory_option
def export(*, directory: Path) -> None:
    """Print everything of a running plane, Secrets included, as YAML for `kubectl apply -f`.

    Status, UIDs and revisions stay behind, and so does what is made again without being asked for: Events, Leases,
    what the server starts with, what `kardinal local up` installs and its simulator applies, and what a controller
    owns. Bundles that have ended, or that a newer one has overtaken, stay behind, too: applied to another plane they
    would be promoted once more. Where custom resources are new, apply twice.
    """
    # Imported here, because `up` does not need it.
    from kardinal_local.export import print_everything  # noqa: PLC0415

    if local_plane.holder(directory) is None:
        raise CommandError(f"nothing runs on {directory}", remedy=f"Start it: kardinal local up --dir {directory}")
    print_everything(directory / "kubeconfig")


@local.command()
@_directory_option
def status(*, directory: Path) -> None:
    """Say whether something runs on a directory, and where it listens."""
    process = local_plane.holder(directory)
    if process is None:
        raise CommandError(f"nothing runs on {directory}", remedy=f"Start it: kardinal local up --dir {directory}")
    say(f"process {process} runs on {directory}")
    endpoints = directory / "endpoints.json"
    _print_places(directory / "kubeconfig", orjson.loads(endpoints.read_bytes()) if endpoints.exists() else {})
