"""`kardinal history`: what ran where, when, by whom, and how long that took."""

from __future__ import annotations

import click

from kardinal.cli.errors import CommandError
from kardinal.cli.output import age, one_line, print_table, print_value, span, state_text
from kardinal.cli.promotions import Promotion, promotions
from kardinal.cli.session import Session, cluster_command, output_option

__all__ = ["history"]


@click.command()
@click.argument("pipeline")
@click.option("--env", "environment", metavar="ENVIRONMENT", help="Only this one, which the Pipeline may have had.")
@output_option
@cluster_command
async def history(session: Session, *, pipeline: str, environment: str | None, output: str) -> None:
    """List the promotions of a Pipeline, newest first, with who let them through and how long they took.

    It reads the Bundles that are kept (`historyLimit` of the Pipeline), and needs no PromotionStep or Graph. With
    -o json and -o yaml each promotion has its evidence.
    """
    found = await session.pipeline(pipeline)
    bundles = await session.bundles(pipeline)
    known = dict.fromkeys(entry.name for entry in found.spec.environments)
    known |= dict.fromkeys(name for bundle in bundles for name in bundle.status.environments)
    if environment is not None and environment not in known:
        raise CommandError(
            f"Pipeline {pipeline} has no environment {environment}", remedy=f"It has: {', '.join(known)}"
        )
    listed = promotions(bundles, environment=environment)
    if output != "table":
        print_value([promotion.to_json() for promotion in listed], output)
        return
    print_table(
        ["ENVIRONMENT", "VERSION", "BUNDLE", "STATE", "AGE", "TOOK", "BY", "COMMIT", "PULL REQUEST"],
        list(map(_row, listed)),
        empty=f"No promotion yet. Create a Bundle: kardinal create bundle {pipeline} --image REPOSITORY:TAG",
        prose=("BY",),
    )


def _row(promotion: Promotion) -> list[str]:
    record = promotion.record
    attempt = f" (attempt {promotion.attempt})" if promotion.attempt > 1 else ""
    return [
        promotion.environment,
        one_line(promotion.version),
        promotion.bundle.metadata.name + attempt,
        state_text(record.state),
        age(promotion.at),
        span(promotion.took) if promotion.took is not None else "",
        one_line(", ".join(promotion.by)),
        (record.commit or "")[:12],
        one_line(record.pr_url or ""),
    ]
