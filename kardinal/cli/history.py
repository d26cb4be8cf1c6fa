"""`kardinal history`: past promotions with their version, environment, time, approvers and duration."""

from __future__ import annotations

from typing import Any

import click

from kardinal.cli.output import age, one_line, print_table, print_value, span, state_text
from kardinal.cli.session import Session, cluster_command, output_option
from kardinal.promotion.views.missing import unknown_environment
from kardinal.promotion.views.promotions import PromotionAttempt, known_environments, promotions

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
    known = known_environments(found, bundles)
    if environment is not None and environment not in known:
        raise unknown_environment(pipeline, environment, known)
    listed = promotions(bundles, environment=environment)
    if output != "table":
        print_value([_document(promotion) for promotion in listed], output)
        return
    print_table(
        ["ENVIRONMENT", "VERSION", "BUNDLE", "STATE", "AGE", "TOOK", "BY", "COMMIT", "PULL REQUEST"],
        list(map(_row, listed)),
        empty=f"No promotion yet. Create a Bundle: kardinal create bundle {pipeline} --image REPOSITORY:TAG",
        prose=("BY",),
    )


def _document(promotion: PromotionAttempt) -> dict[str, Any]:
    shown = ("state", "message", "startedAt", "promotedAt", "verifiedAt", "commit", "prURL", "evidence")
    record = promotion.record.to_json()
    found = {
        "environment": promotion.environment,
        "bundle": promotion.bundle.metadata.name,
        "version": promotion.version,
        "attempt": promotion.attempt,
        "by": list(promotion.by),
        "requestedBy": promotion.requested_by,
        "seconds": promotion.took.total_seconds() if promotion.took is not None else None,
        **{name: record.get(name) for name in shown},
    }
    return {name: value for name, value in found.items() if value is not None}


def _row(promotion: PromotionAttempt) -> list[str]:
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
