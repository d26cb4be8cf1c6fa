"""Differential fuzz: the same requests to two servers, and every difference in their answers.

    schemas, values        what is there to write: generated definitions, and values that fit them or nearly do
    builtins               the same for Deployment, ConfigMap and Service
    sequences, steps       what is asked: at least eight requests for one object, from a seed
    server, player         asking it
    outcomes               what of an answer has to be equal
    runner, histogram      two servers side by side, and what was met on the way
    corpus                 differences that were found once, with the answers of the real server

`python -m tests.local.contract.fuzz --sequences 200 --seed 7 --right KUBECONFIG` plays it by hand, with a new plane on
the left.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import click

from hack.kube.launcher import control_plane
from kardinal_local.plane import LocalPlane
from tests.local.contract.fuzz.corpus import keep
from tests.local.contract.fuzz.runner import Report, duel
from tests.local.contract.fuzz.server import Server, serving


@click.command()
@click.option("--sequences", default=200, show_default=True, help="How many sequences to play.")
@click.option("--seed", type=int, help="What sequences and schemas are made from; a new one if absent.")
@click.option("--left", type=click.Path(path_type=Path), help="Kubeconfig of the left server; a new plane if absent.")
@click.option("--right", type=click.Path(path_type=Path), help="Kubeconfig of the right one; a real one if absent.")
@click.option("--patience", default=1, show_default=True, help="Stop after so many sequences that differ.")
@click.option("--keep", "kept", type=click.Path(path_type=Path), help="Write differences into this directory.")
def main(*, kept: Path | None, **options: Any) -> None:
    """Play the same sequences of requests on two servers and compare what they answer."""
    seed = options.pop("seed")
    seed = secrets.randbelow(10**6) if seed is None else seed
    click.echo(f"seed {seed}")
    with ExitStack() as stack:
        right = options.pop("right") or stack.enter_context(control_plane())
        report = asyncio.run(_run(seed=seed, right=right, **options))
    click.echo(report.histogram.shown())
    for difference in report.differences:
        click.echo(difference.shown())
        if kept is not None:
            keep(difference, kept)
    click.echo(f"{len(report.differences)} sequences differ")
    sys.exit(1 if report.differences else 0)


async def _run(*, seed: int, sequences: int, left: Path | None, right: Path, patience: int) -> Report:
    async with _left(left) as one, serving(right) as other, duel(one, other, seed=seed) as arena:
        report = await arena.run(range(sequences), patience=patience)
        report.differences = [await arena.shrink(found) for found in report.differences]
        return report


@asynccontextmanager
async def _left(kubeconfig: Path | None) -> AsyncIterator[Server]:
    """The server of a kubeconfig, or a plane that goes again."""
    async with AsyncExitStack() as stack:
        if kubeconfig is None:
            directory = stack.enter_context(tempfile.TemporaryDirectory())
            plane = await LocalPlane.start(Path(directory) / "plane")
            stack.push_async_callback(plane.stop)
            kubeconfig = plane.kubeconfig
        yield await stack.enter_async_context(serving(kubeconfig))


if __name__ == "__main__":
    main()
