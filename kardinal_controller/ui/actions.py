"""The actions of the page's buttons: what a command does, done with the viewer's own client.

    POST /api/ui/v1/actions/promote               {"namespace": "shop", "pipeline": "search", "environment": "prod"}
    POST /api/ui/v1/actions/promote?dry-run=true  answers with the plan, and changes nothing

Only a viewer of `kardinal ui` and `kardinal local up` acts here. Everywhere else, and so in a cluster, the answer is
403 with the command to type: a session there must not change anything, and no viewer gets the rights of the controller.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import get_args

import click
from aiohttp import web
from pydantic import ValidationError

from kardinal.kube import ApiError, Forbidden
from kardinal.objects.errors import KardinalError
from kardinal.objects.text import cut
from kardinal.promotion.requests import (
    URL,
    RequestDenied,
    Requester,
    Unanswered,
    approve,
    ask,
    end_hold,
    find_approved_gate,
    find_promoted,
    find_rollback,
    freeze,
    local_url,
    may_approve,
    open_pull_requests,
    pipeline_of,
    refuse_merge,
    roll_back,
    stored_bundle,
    unfreeze,
)
from kardinal.runtime.routes import HttpRoute, RouteGroup
from kardinal_controller.ui.access import Access, Refusal, Seat
from kardinal_controller.ui.access.refusal import read_body
from kardinal_controller.ui.model import ActionAnswer, ActionName, ActionRequest, PlannedChange

__all__ = ["ActionRoutes", "command_of"]

DIFF_LIMIT = 64 * 1024
"""The most characters of the diff of one environment."""
FILES = 200
"""The most files of a plan that are named."""

_PATH = "/api/ui/v1/actions/{action}"
_LOCAL = "local"

_Act = Callable[[Requester, ActionRequest, bool], Awaitable[ActionAnswer]]


class ActionRoutes:
    """The routes of actions behind an access.

    `approvals`: the URL of the controller that approvals are posted to. Defaults to that of `kardinal local up`, if the
    viewer's API server is that one.
    """

    def __init__(self, access: Access, *, base_path: str = "", approvals: str | None = None) -> None:
        self._access = access
        self._base_path = base_path
        self._acts: dict[str, _Act] = {
            "promote": _promote,
            "retry": _retry,
            "pause": _pause,
            "resume": _resume,
            "rollback": _roll_back,
            "merge": _merge,
            "approve": partial(_approve, approvals),
        }

    def group(self) -> RouteGroup[Seat]:
        return RouteGroup((HttpRoute("POST", f"{self._base_path}{_PATH}", self._act),), self._access.authenticated)

    async def _act(self, request: web.Request, seat: Seat) -> web.StreamResponse:
        action = request.match_info["action"]
        act = self._acts.get(action)
        if act is None:
            raise Refusal(
                HTTPStatus.NOT_FOUND, "there is no such action", remedy=f"There are: {', '.join(get_args(ActionName))}"
            )
        dry_run = request.query.get("dry-run", "false")
        if dry_run not in ("true", "false"):
            raise Refusal(HTTPStatus.BAD_REQUEST, "dry-run is neither true nor false", remedy="Say ?dry-run=true.")
        try:
            wanted = ActionRequest.model_validate_json(await read_body(request))
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"])) or "the body"
            raise Refusal(
                HTTPStatus.BAD_REQUEST, f"{where}: {error.errors()[0]['msg']}", remedy="Send what the model says."
            ) from None
        command = command_of(action, wanted)
        if not seat.viewer.may_act or seat.client is None:
            raise Refusal(
                HTTPStatus.FORBIDDEN,
                "the page that a cluster serves changes nothing",
                remedy="Type the command, or open the page by: kardinal ui",
                command=command,
            )
        requester = Requester(
            client=seat.client,
            namespace=wanted.namespace,
            by=cut(seat.viewer.user, 128),
            option=f" -n {wanted.namespace}",
            program="ui",
        )
        try:
            answer = await act(requester, wanted, dry_run == "true")
        except (KardinalError, click.ClickException) as error:
            raise _refusal(error, command) from None
        return web.Response(body=answer.model_dump_json(exclude_none=True).encode(), content_type="application/json")


def command_of(action: str, wanted: ActionRequest) -> str:
    """Return the command that does what an action does."""
    env = ["--env", wanted.environment] if wanted.environment else []
    match action:
        case "promote":
            words = ["promote", wanted.pipeline, *env, *(["--bundle", wanted.bundle] if wanted.bundle else [])]
        case "retry":
            words = ["retry", wanted.bundle or "BUNDLE", *env]
        case "pause":
            words = ["pause", wanted.pipeline, *(["--reason", wanted.reason] if wanted.reason else [])]
        case "resume":
            words = ["resume", wanted.pipeline, *env]
        case "rollback":
            words = [
                *("rollback", wanted.pipeline, *env),
                *(["--to", wanted.bundle] if wanted.bundle else []),
                *(["--emergency"] if wanted.emergency else []),
                *([] if wanted.hold else ["--no-hold"]),
            ]
        case "approve":
            words = [
                *("approve", wanted.bundle or "BUNDLE", *env),
                *(["--gate", wanted.gate] if wanted.gate else []),
                *(["--reason", wanted.reason] if wanted.reason else []),
            ]
        case _:
            words = ["pr", "merge", str(wanted.pull_request or "NUMBER")]
    return shlex.join(["kardinal", *words, "-n", wanted.namespace])


def _refusal(error: KardinalError | click.ClickException, command: str) -> Refusal:
    """Return the answer to a request that the API server, the controller or a repository has refused."""
    if isinstance(error, click.ClickException):
        message, _, remedy = error.message.partition("\n  ")
        return Refusal(HTTPStatus.CONFLICT, message, remedy=remedy or "Try the command.", command=command)
    status = HTTPStatus.CONFLICT
    remedy = error.remedy or "Try the command."
    if isinstance(error, Forbidden):
        status = HTTPStatus.FORBIDDEN
        remedy = "Ask for a role that allows it: kardinal-promoter"
    elif isinstance(error, ApiError) and error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        status = HTTPStatus.SERVICE_UNAVAILABLE
    return Refusal(status, error.message or type(error).__name__, remedy=remedy, command=command)


async def _promote(requester: Requester, wanted: ActionRequest, dry_run: bool) -> ActionAnswer:
    if wanted.environment is None and wanted.bundle is None:
        raise RequestDenied("nothing says what is promoted", remedy="Name an environment, a Bundle, or both.")
    command = command_of("promote", wanted)
    bundle = await find_promoted(requester, wanted.pipeline, wanted.environment, wanted.bundle)
    if dry_run:
        line = f"Bundle {bundle} would go on to {wanted.environment or 'every environment it is meant for'}"
        return ActionAnswer(lines=[line], command=command, plan=await _plan(requester, wanted, bundle))
    lines = await _asked(requester, bundle, "promote", wanted.environment)
    line = f"Bundle {bundle} goes on to {wanted.environment or 'every environment it is meant for'}"
    return ActionAnswer(lines=[line, *lines], command=command)


async def _retry(requester: Requester, wanted: ActionRequest, dry_run: bool) -> ActionAnswer:
    if wanted.environment is None or wanted.bundle is None:
        raise RequestDenied("nothing says what is tried again", remedy="Name a Bundle and an environment.")
    await _check_pipeline(requester, wanted)
    if dry_run:
        line = f"Bundle {wanted.bundle} would be tried again in {wanted.environment}"
        plan = await _plan(requester, wanted, wanted.bundle)
        return ActionAnswer(lines=[line], command=command_of("retry", wanted), plan=plan)
    lines = await _asked(requester, wanted.bundle, "retry", wanted.environment)
    line = f"Bundle {wanted.bundle} is tried again in {wanted.environment}"
    return ActionAnswer(lines=[line, *lines], command=command_of("retry", wanted))


async def _pause(requester: Requester, wanted: ActionRequest, dry_run: bool) -> ActionAnswer:
    command = command_of("pause", wanted)
    if dry_run:
        await requester.pipeline(wanted.pipeline)
        line = f"Every promotion of {wanted.pipeline} would be held at its next safe point"
    else:
        paused = await freeze(requester, wanted.pipeline, wanted.reason)
        line = f"Pipeline {wanted.pipeline} paused" if paused else f"Pipeline {wanted.pipeline} is paused already"
    return ActionAnswer(lines=[line], command=command)


async def _resume(requester: Requester, wanted: ActionRequest, dry_run: bool) -> ActionAnswer:
    command = command_of("resume", wanted)
    await requester.pipeline(wanted.pipeline)
    of = f"{wanted.environment} of Pipeline {wanted.pipeline}"
    if dry_run:
        line = f"{of} would take Bundles again" if wanted.environment else f"{wanted.pipeline} would go on"
    elif wanted.environment is not None:
        ended = await end_hold(requester, wanted.pipeline, wanted.environment)
        line = f"{of} takes Bundles again" if ended else f"{of} is not held"
    else:
        resumed = await unfreeze(requester, wanted.pipeline)
        line = f"Pipeline {wanted.pipeline} resumed" if resumed else f"Pipeline {wanted.pipeline} is not paused"
    return ActionAnswer(lines=[line], command=command)


async def _roll_back(requester: Requester, wanted: ActionRequest, dry_run: bool) -> ActionAnswer:
    if wanted.environment is None:
        raise RequestDenied("nothing says what is rolled back", remedy="Name an environment.")
    found = await find_rollback(requester, wanted.pipeline, wanted.environment, wanted.bundle)
    goes = "would go" if dry_run else "goes"
    line = (
        f"{found.environment} {goes} back from {found.old} to {found.new}, that of {found.restores['metadata']['name']}"
    )
    if not dry_run:
        await roll_back(requester, found, hold=wanted.hold, emergency=wanted.emergency)
    resume = f"kardinal resume {wanted.pipeline} --env {wanted.environment}{requester.option}"
    held = [f"Nothing else {'would get' if dry_run else 'gets'} there until: {resume}"] if wanted.hold else []
    return ActionAnswer(lines=[line, *held], command=command_of("rollback", wanted))


async def _merge(requester: Requester, wanted: ActionRequest, dry_run: bool) -> ActionAnswer:
    if wanted.pull_request is None:
        raise RequestDenied("nothing says what is merged", remedy="Name the number of a pull request.")
    git = (await requester.pipeline(wanted.pipeline)).spec.git
    if git.provider != _LOCAL:
        raise RequestDenied(
            f"the pull requests of {wanted.pipeline} are at its Git host", remedy="Merge it there, as its reviewer."
        )
    async with open_pull_requests(git.url) as pulls:
        pull = await pulls.get(wanted.pull_request)
        if pull.pipeline != wanted.pipeline:
            raise RequestDenied(
                f"pull request {pull.number} belongs to another Pipeline", remedy="Look at it: kardinal pr show"
            )
        await refuse_merge(requester, pull)
        if dry_run:
            line = f"#{pull.number} would be merged into {pull.base}: {cut(pull.title, 200)}"
        else:
            merged = await pulls.merge(pull.number, by=requester.by)
            line = f"#{pull.number} merged as {(merged.merge_commit or '')[:12]} into {merged.base}"
    return ActionAnswer(lines=[line], command=command_of("merge", wanted))


async def _approve(approvals: str | None, requester: Requester, wanted: ActionRequest, dry_run: bool) -> ActionAnswer:
    if wanted.environment is None or wanted.bundle is None:
        raise RequestDenied("nothing says what is approved", remedy="Name a Bundle and an environment.")
    command = command_of("approve", wanted)
    await _check_pipeline(requester, wanted)
    gate = await find_approved_gate(requester, wanted.bundle, wanted.environment, wanted.gate)
    if not await may_approve(requester, gate):
        namespace, _, name = gate.partition("/")
        raise Refusal(
            HTTPStatus.FORBIDDEN,
            f"you may not approve at gate {gate}",
            remedy=f"Ask in namespace {namespace} for the verb approve on policygates.kardinal.io {name}.",
            command=command,
        )
    where = f"at gate {gate} before {wanted.environment}"
    if dry_run:
        return ActionAnswer(lines=[f"Bundle {wanted.bundle} would be approved {where}"], command=command)
    given = await approve(
        requester,
        wanted.bundle,
        wanted.environment,
        gate,
        url=approvals or await local_url(requester),
        reason=" ".join((wanted.reason or "").split()) or None,
    )
    lines = [f"Bundle {wanted.bundle} is approved {where}: Approval {given.name}"]
    if given.via == "admission":
        lines.append(
            f"You have created it yourself, because {URL} is not set or your kubeconfig has no bearer token: it counts "
            "if the controller runs with --approvals-by-admission."
        )
    return ActionAnswer(lines=lines, command=command)


async def _check_pipeline(requester: Requester, wanted: ActionRequest) -> None:
    """Refuse a Bundle of another Pipeline than that of the page."""
    stored = await stored_bundle(requester, wanted.bundle or "")
    if pipeline_of(stored) != wanted.pipeline:
        raise RequestDenied(
            f"Bundle {wanted.bundle} is not of Pipeline {wanted.pipeline}", remedy="Load the page anew."
        )


async def _asked(requester: Requester, bundle: str, action: str, environment: str | None) -> list[str]:
    """Make a request; returns the note that no controller has answered, if none has."""
    try:
        await ask(requester, bundle, "retry" if action == "retry" else "promote", environment)
    except Unanswered as error:
        return [f"{error.message} {error.remedy}"]
    return []


async def _plan(requester: Requester, wanted: ActionRequest, bundle: str) -> list[PlannedChange]:
    """Return the plan that `kardinal plan` prints, computed on this machine with the viewer's own git."""
    # Imported here: a controller in a cluster plans nothing.
    from kardinal.cli.bundle_plan import planned  # noqa: PLC0415
    from kardinal.cli.session import Session  # noqa: PLC0415

    session = Session(requester.client, requester.namespace, chosen=True)
    pipeline = await requester.pipeline(wanted.pipeline)
    found = await requester.bundle(wanted.pipeline, bundle)
    plan = partial(planned, session, pipeline, found, environment=wanted.environment)
    # It reads files and runs programs as a command does, which must not hold the streams of the page.
    results = await asyncio.to_thread(lambda: asyncio.run(plan()))
    return [
        PlannedChange(
            environment=each.environment,
            sentence=each.sentence,
            files=list(each.files[:FILES]),
            diff=cut(each.diff, DIFF_LIMIT),
            pull_request=each.pull_request[0] if each.pull_request else None,
            note=each.note or None,
            error=each.error or None,
        )
        for each in results
    ]
