"""Ask for a rollback: a new Bundle with the artifacts of an earlier one, and a hold on the environment before it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from kardinal.kube import Forbidden, KubeError
from kardinal.objects import JsonObject
from kardinal.promotion.api import Bundle, Pipeline
from kardinal.promotion.api.image import stored_title
from kardinal.promotion.api.names import LABEL_PIPELINE, bundle_name, label_value
from kardinal.promotion.kinds import BUNDLE
from kardinal.promotion.policy.hold_gate import hold_gate
from kardinal.promotion.requests.holds import find_hold, put_hold
from kardinal.promotion.requests.requester import RequestDenied, Requester
from kardinal.promotion.translation.rollback import Landing, new_rollback, past_of, verified_at
from kardinal.promotion.views.missing import unknown_bundle, unknown_environment

__all__ = ["PlannedRollback", "find_rollback", "roll_back"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRollback:
    """A rollback that can be made: `runs` has landed last in the environment, and `restores` is the earlier Bundle."""

    pipeline: Pipeline
    environment: str
    runs: Landing
    restores: JsonObject
    name: str
    """The name of the new Bundle."""

    @property
    def old(self) -> str:
        """The versions that run."""
        return stored_title(self.runs.bundle["spec"]["artifacts"])

    @property
    def new(self) -> str:
        """The versions that are restored."""
        return stored_title(self.restores["spec"]["artifacts"])


async def find_rollback(requester: Requester, pipeline: str, environment: str, bundle: str | None) -> PlannedRollback:
    """Return the rollback of an environment to `bundle`, which defaults to the one that was Verified there before.

    Raises `NotThere`, and `RequestDenied` if there is nothing to go back to, or if that is under way already.
    """
    found = await requester.pipeline(pipeline)
    known = [each.name for each in found.spec.environments]
    if environment not in known:
        raise unknown_environment(pipeline, environment, known)
    labels = f"{LABEL_PIPELINE}={label_value(pipeline)}"
    bundles = (await requester.client.list(BUNDLE, requester.namespace, labels=labels)).items
    runs, restores = _chosen(found, environment, bundles, bundle)
    _refuse_second(bundles, pipeline, environment, restores)
    new = stored_title(restores["spec"]["artifacts"])
    name = bundle_name(pipeline, new, f"rollback-{secrets.token_hex(4)}")
    return PlannedRollback(pipeline=found, environment=environment, runs=runs, restores=restores, name=name)


async def roll_back(requester: Requester, planned: PlannedRollback, *, hold: bool, emergency: bool) -> None:
    """Hold the environment if `hold` is true, and create the Bundle. Raises `RequestDenied`."""
    pipeline = planned.pipeline.metadata.name
    environment = planned.environment
    if hold:
        message = f"rolled back from {planned.old} to {planned.new} by {requester.by}"
        gate = hold_gate(pipeline, environment, namespace=requester.namespace, bundle=planned.name, message=message)
        await _hold(requester, gate, pipeline, environment)
    elif await find_hold(requester, pipeline, environment) is not None:
        raise RequestDenied(
            f"{environment} is held since an earlier rollback, which would hold this one as well",
            remedy=f"Leave --no-hold out, or first: kardinal resume {pipeline} --env {environment}",
        )
    wanted = new_rollback(
        planned.restores,
        of=planned.runs,
        pipeline=pipeline,
        environment=environment,
        source=requester.program,
        emergency=emergency,
    )
    try:
        await requester.client.create(BUNDLE, wanted.manifest(planned.name), field_manager=requester.field_manager)
    except KubeError as error:
        held = f"; {environment} is held until: kardinal resume {pipeline} --env {environment}" if hold else ""
        raise RequestDenied(
            f"the rollback could not be created{held}", remedy=f"The API server says: {error}"
        ) from error


def _chosen(
    pipeline: Pipeline, environment: str, bundles: Sequence[JsonObject], name: str | None
) -> tuple[Landing, JsonObject]:
    """Return the last landing in the environment, and the Bundle to restore.

    `name` is the Bundle to restore; defaults to the Bundle that was Verified there before. Raises `RequestDenied` if
    there is no such Bundle.
    """
    past = past_of(bundles, environment)
    if past.runs is None:
        raise RequestDenied(
            f"nothing of Pipeline {pipeline.metadata.name} has landed in {environment}",
            remedy="There is nothing to roll back.",
        )
    if name is not None:
        return past.runs, _named(pipeline, environment, bundles, name)
    if past.previous is None:
        raise RequestDenied(
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
    raise RequestDenied(f"Bundle {name} was never Verified in {environment}", remedy=f"These were: {names}")


def _revert(pipeline: Pipeline, environment: str, runs: Landing) -> str:
    """Return the instruction to revert the change without kardinal: `git revert`, or the path of the version."""
    git = pipeline.spec.git
    spec = next(each for each in pipeline.spec.environments if each.name == environment)
    where = f"on branch {spec.target_branch(git)} of {git.url}"
    if runs.commit is None:
        return f"It has made no commit: put the version that you want into {spec.directory} {where}"
    return f"Take its change back by hand, {where}:\n  git revert {runs.commit}"


def _refuse_second(bundles: Sequence[JsonObject], pipeline: str, environment: str, restores: JsonObject) -> None:
    """Raise `RequestDenied` if a rollback of the environment to the same Bundle has not ended yet."""
    for each in bundles:
        rollback = (each["spec"].get("intent") or {}).get("rollback")
        if rollback is None or Bundle.model_validate(each).status.has_ended:
            continue
        if environment in rollback["environments"] and rollback["restores"]["uid"] == restores["metadata"]["uid"]:
            name = each["metadata"]["name"]
            raise RequestDenied(
                f"Bundle {name} is bringing {environment} back to that already",
                remedy=f"See how far it is: kardinal status {pipeline} --bundle {name}",
            )


async def _hold(requester: Requester, hold: JsonObject, pipeline: str, environment: str) -> None:
    try:
        await put_hold(requester, hold, pipeline, environment)
    except Forbidden as error:
        raise RequestDenied(
            f"you may not hold {environment}: {error.message}",
            remedy="Ask for the role kardinal-promoter, or go without a hold: --no-hold",
        ) from error
