"""`kardinal rollback`: bring an environment back to what was Verified there before."""

from __future__ import annotations

import getpass
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime

import click

from kardinal.api import BUNDLE, POLICY_GATE, Bundle, Pipeline
from kardinal.api.image import stored_title
from kardinal.api.names import LABEL_PIPELINE, bundle_name, freeze_name, label_value
from kardinal.cli.errors import CommandError
from kardinal.cli.holds import find_hold, put_hold
from kardinal.cli.output import say
from kardinal.cli.session import Session, cluster_command, unknown_bundle
from kardinal.cli.status.following import wait_for_end, wait_option
from kardinal.cli.status.view import unattended
from kardinal.kube import Forbidden, KubeError, NotFound
from kardinal.objects import JsonObject
from kardinal.policy.holds import hold_gate
from kardinal.translation.rollback import Landing, new_rollback, past_of, verified_at

__all__ = ["rollback"]


@click.command()
@click.argument("pipeline")
@click.option("--env", "environment", required=True, metavar="ENVIRONMENT", help="What is rolled back.")
@click.option("--to", "bundle", metavar="BUNDLE", help="What it goes back to; default: the one Verified there before.")
@click.option("--emergency", is_flag=True, help="Tell gates that it is urgent, as bundle.emergency; they decide.")
@click.option("--no-hold", is_flag=True, help="Do not keep other Bundles from the environment afterwards.")
@wait_option
@cluster_command
async def rollback(
    session: Session,
    *,
    pipeline: str,
    environment: str,
    bundle: str | None,
    emergency: bool,
    no_hold: bool,
    waiting: bool,
) -> None:
    """Bring an environment back to what was Verified there before.

    It is a promotion like others: a new Bundle with the artifacts of an earlier one, which goes to this environment
    alone, past the same gates and by the same pull request. Afterwards no other Bundle gets there until
    `kardinal resume PIPELINE --env ENVIRONMENT`.
    """
    found = await session.pipeline(pipeline)
    known = [each.name for each in found.spec.environments]
    if environment not in known:
        raise CommandError(
            f"Pipeline {pipeline} has no environment {environment}", remedy=f"It has: {', '.join(known)}"
        )
    labels = f"{LABEL_PIPELINE}={label_value(pipeline)}"
    bundles = (await session.client.list(BUNDLE, session.namespace, labels=labels)).items
    runs, restores = _chosen(found, environment, bundles, bundle)
    _refuse_second(bundles, pipeline, environment, restores)
    old, new = stored_title(runs.bundle["spec"]["artifacts"]), stored_title(restores["spec"]["artifacts"])
    name = bundle_name(pipeline, new, f"rollback-{secrets.token_hex(4)}")
    if not no_hold:
        message = f"rolled back from {old} to {new} by {getpass.getuser()}"
        hold = hold_gate(pipeline, environment, namespace=session.namespace, bundle=name, message=message)
        await _hold(session, hold, pipeline, environment)
    elif await find_hold(session, pipeline, environment) is not None:
        raise CommandError(
            f"{environment} is held since an earlier rollback, which would hold this one as well",
            remedy=f"Leave --no-hold out, or first: kardinal resume {pipeline} --env {environment}",
        )
    wanted = new_rollback(
        restores, of=runs, pipeline=pipeline, environment=environment, source="cli", emergency=emergency
    )
    try:
        await session.client.create(BUNDLE, wanted.manifest(name), field_manager="kardinal-cli")
    except KubeError as error:
        held = "" if no_hold else f"; {environment} is held until: kardinal resume {pipeline} --env {environment}"
        raise CommandError(
            f"the rollback could not be created{held}", remedy=f"The API server says: {error}"
        ) from error
    say(f"bundle.kardinal.io/{name} created")
    say(f"{environment} goes back from {old} to {new}, that of {restores['metadata']['name']}")
    if not no_hold:
        say(f"Nothing else gets there until: kardinal resume {pipeline} --env {environment}{session.option}")
    await _note_what_holds(session, found)
    if waiting:
        await wait_for_end(session, pipeline, name)
    else:
        say(f"Follow it: kardinal watch {pipeline}{session.option}", err=True)


def _chosen(
    pipeline: Pipeline, environment: str, bundles: Sequence[JsonObject], name: str | None
) -> tuple[Landing, JsonObject]:
    """Return what runs in the environment, and the Bundle to go back to."""
    past = past_of(bundles, environment)
    if past.runs is None:
        raise CommandError(
            f"nothing of Pipeline {pipeline.metadata.name} has landed in {environment}",
            remedy="There is nothing to roll back.",
        )
    if name is not None:
        return past.runs, _named(pipeline, environment, bundles, name)
    if past.previous is None:
        raise CommandError(
            f"no Bundle is known that was Verified in {environment} before {past.runs.name}",
            remedy=_revert(pipeline, environment, past.runs),
        )
    return past.runs, past.previous.bundle


def _named(pipeline: Pipeline, environment: str, bundles: Sequence[JsonObject], name: str) -> JsonObject:
    verified = [
        each
        for each in bundles
        if verified_at(Bundle.model_validate(each).status.environments.get(environment)) is not None
    ]
    for each in verified:
        if each["metadata"]["name"] == name:
            return each
    if all(each["metadata"]["name"] != name for each in bundles):
        raise unknown_bundle(pipeline.metadata.name, name)
    names = ", ".join(str(each["metadata"]["name"]) for each in verified) or "none"
    raise CommandError(f"Bundle {name} was never Verified in {environment}", remedy=f"These were: {names}")


def _revert(pipeline: Pipeline, environment: str, runs: Landing) -> str:
    """Return how the change is taken back without kardinal."""
    git = pipeline.spec.git
    spec = next(each for each in pipeline.spec.environments if each.name == environment)
    where = f"on branch {spec.target_branch(git)} of {git.url}"
    if runs.commit is None:
        return f"It has made no commit: put the version that you want into {spec.directory} {where}"
    return f"Take its change back by hand, {where}:\n  git revert {runs.commit}"


def _refuse_second(bundles: Sequence[JsonObject], pipeline: str, environment: str, restores: JsonObject) -> None:
    """Refuse a rollback while the same one is on its way."""
    for each in bundles:
        rollback = (each["spec"].get("intent") or {}).get("rollback")
        if rollback is None or Bundle.model_validate(each).status.has_ended:
            continue
        if environment in rollback["environments"] and rollback["restores"]["uid"] == restores["metadata"]["uid"]:
            name = each["metadata"]["name"]
            raise CommandError(
                f"Bundle {name} is bringing {environment} back to that already",
                remedy=f"See how far it is: kardinal status {pipeline} --bundle {name}",
            )


async def _hold(session: Session, hold: JsonObject, pipeline: str, environment: str) -> None:
    try:
        await put_hold(session, hold, pipeline, environment)
    except Forbidden as error:
        raise CommandError(
            f"you may not hold {environment}: {error.message}",
            remedy="Ask for the role kardinal-promoter, or go without a hold: --no-hold",
        ) from error


async def _note_what_holds(session: Session, pipeline: Pipeline) -> None:
    name = pipeline.metadata.name
    try:
        await session.client.get(POLICY_GATE, freeze_name(name), session.namespace)
    except NotFound:
        pass
    else:
        say(f"Note: {name} is paused, which holds this too; to go on: kardinal resume {name}", err=True)
    if warning := unattended([pipeline], now=datetime.now(UTC)):
        say(f"Note: {warning}", err=True)
