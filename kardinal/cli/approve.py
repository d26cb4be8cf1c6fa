"""`kardinal approve`: let a Bundle through a gate that reads approvals."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import click

from kardinal.cli.output import print_value, say
from kardinal.cli.session import Session, cluster_command, output_option
from kardinal.objects.duration import DurationError, parse_duration
from kardinal.promotion.requests import URL, find_approved_gate, local_url
from kardinal.promotion.requests import approve as give

__all__ = ["approve"]


@click.command()
@click.argument("bundle")
@click.option("--env", "environment", required=True, metavar="ENVIRONMENT", help="Where the gate holds the Bundle.")
@click.option("--gate", metavar="[NAMESPACE/]GATE", help="Default: the only gate there that reads approvals.")
@click.option("--reason", metavar="TEXT", help="Why, on one line.")
@click.option("--for", "lifetime", metavar="DURATION", help="For how long it counts, such as 1h; default: for ever.")
@output_option
@cluster_command
async def approve(
    session: Session,
    *,
    bundle: str,
    environment: str,
    gate: str | None,
    reason: str | None,
    lifetime: str | None,
    output: str,
) -> None:
    """Let a Bundle through a gate that reads approvals.

    The controller at KARDINAL_URL checks your right, which the owners of the gate give, and signs the Approval. Without
    that variable, or with a kubeconfig without a token, you create the Approval yourself.
    """
    try:
        expires_at = datetime.now(UTC) + parse_duration(lifetime) if lifetime is not None else None
    except DurationError as error:
        raise click.BadParameter(str(error), param_hint="--for") from None
    requester = session.requester
    found = await find_approved_gate(requester, bundle, environment, gate)
    url = os.environ.get(URL) or await local_url(requester)
    given = await give(
        requester,
        bundle,
        environment,
        found,
        url=url,
        reason=" ".join((reason or "").split()) or None,
        expires_at=expires_at,
    )
    if output == "table":
        say(f"approval.kardinal.io/{given.name} created: Bundle {bundle} at gate {given.gate} before {environment}")
    else:
        values = {"name": given.name, "namespace": session.namespace, "bundle": bundle, "environment": environment}
        print_value({**values, "gate": given.gate, "via": given.via}, output)
    if given.via == "admission":
        why = f"{URL} is not set" if url is None else "the kubeconfig has no bearer token"
        say(
            f"Note: {why}, so you have created it yourself. It counts if the controller runs with "
            f"--approvals-by-admission. Revoke it: kubectl delete approval {given.name} -n {session.namespace}",
            err=True,
        )
