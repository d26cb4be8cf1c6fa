"""`kardinal pause` and `resume`: create and delete the freeze of a Pipeline, and delete the holds of rollbacks.

Freeze and hold are PolicyGates that agents check before every effect. The commands do nothing else, so deleting the
PolicyGate with kubectl resumes the Pipeline as well.
"""

from __future__ import annotations

import click

from kardinal.cli.output import one_line, say
from kardinal.cli.session import Session, cluster_command
from kardinal.promotion.requests import end_hold, freeze, unfreeze
from kardinal.promotion.views.reading import holds_of

__all__ = ["pause", "resume"]


@click.command()
@click.argument("pipeline")
@click.option("--reason", help="Why, shown on the PromotionSteps that it holds.")
@cluster_command
async def pause(session: Session, *, pipeline: str, reason: str | None) -> None:
    """Hold every promotion of a Pipeline at its next safe point."""
    if not await freeze(session.requester, pipeline, reason):
        say(f"Pipeline {pipeline} is paused already")
        return
    say(f"Pipeline {pipeline} paused")
    say(f"Go on with: kardinal resume {pipeline} -n {session.namespace}", err=True)


@click.command()
@click.argument("pipeline")
@click.option("--env", "environment", metavar="ENVIRONMENT", help="End the hold on this environment instead.")
@cluster_command
async def resume(session: Session, *, pipeline: str, environment: str | None) -> None:
    """Let the promotions of a paused Pipeline, or to a held environment, go on.

    An environment is held since it was rolled back. Without --env those that are held are listed.
    """
    await session.pipeline(pipeline)
    if environment is not None:
        ended = await end_hold(session.requester, pipeline, environment)
        of = f"{environment} of Pipeline {pipeline}"
        say(f"{of} takes Bundles again" if ended else f"{of} is not held")
        return
    if await unfreeze(session.requester, pipeline):
        say(f"Pipeline {pipeline} resumed")
    else:
        say(f"Pipeline {pipeline} is not paused")
    for held, gate in holds_of(await session.reader.gates(session.namespace), pipeline):
        say(f"{held} is held: {one_line(gate['spec'].get('message') or 'since a rollback')}")
        say(f"  to let Bundles get there again: kardinal resume {pipeline} --env {held}{session.option}")
