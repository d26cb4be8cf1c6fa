"""Run `kardinal demo`: promote a Bundle through dev, staging and prod of a sample repository on this machine.

The repository, the commits, the pull request, the signed webhook request and the API server are real. Only the cluster
is simulated, and the output says so. This is a composition root, like `stack`.
"""

from __future__ import annotations

import asyncio
import difflib
import getpass
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path

import aiohttp
import click
import orjson
from rich.live import Live
from rich.text import Text

from kardinal.cli.changes import changes
from kardinal.cli.errors import CommandError
from kardinal.cli.output import console, plain_text, say
from kardinal.cli.session import Session
from kardinal.cli.status.following import WATCHED
from kardinal.cli.status.screen import screen
from kardinal.cli.styles import for_terminal
from kardinal.clock import SystemClock
from kardinal.git import GitRunner, Repositories, Repository, create_bare_repository
from kardinal.kube import Client, load_connection
from kardinal.objects import SECRET, ResourceType
from kardinal.objects.text import escaped
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.api.signature import IDEMPOTENCY_KEY, SIGNATURE, TIMESTAMP, signature, signed_text
from kardinal.promotion.kinds import BUNDLE, PIPELINE, POLICY_GATE, PROMOTION_STEP
from kardinal.promotion.views.reading import read_objects
from kardinal.promotion.views.status import status_view
from kardinal.scm import PullRequests, local_pull_requests
from kardinal_local import sample
from kardinal_local.serving import PlaneOptions
from kardinal_local.signals import stop_signals
from kardinal_local.stack import POLICY_NAMESPACE, Stack, run_stack
from kardinal_local.timeline import Line, Timeline

__all__ = ["walk_through"]

NAMESPACE = "default"
DEADLINE = 120.0
"""The time in seconds without a change after which the demo fails."""
POST_DEADLINE = 30.0

_NEXT = """
what to try next:
  kardinal local up --simulate   the same to work with; it runs until Ctrl-C and keeps its data
  kardinal sample                then a repository of your own to break, by the README's "By hand"
  kardinal init --from PATH      or a Pipeline for the one that you have"""

_CLOCK = SystemClock()


async def walk_through(*, ask: bool, keep: bool) -> None:
    """Run the demo. `ask`: ask before the merge. `keep`: keep the plane running at the end, until Ctrl-C."""
    if (walk := asyncio.current_task()) is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, walk.cancel)
    async with _directory() as directory, AsyncExitStack() as resources:
        bare = directory / "gitops.git"
        runner = GitRunner(workers=1)
        resources.callback(runner.close)
        await runner.run(_create_sample, bare)
        stack = await resources.enter_async_context(
            run_stack(directory / "local", options=PlaneOptions(port=0), simulate=True)
        )
        repositories = Repositories(directory / "git", runner=runner, clock=_CLOCK, allow_local=True)
        resources.push_async_callback(repositories.close)
        repository = repositories.open(bare.as_uri())
        client = Client(await load_connection(stack.plane.kubeconfig), user_agent="kardinal-demo")
        await resources.enter_async_context(client)
        before = await repository.head("main")
        token = secrets.token_urlsafe(24)
        key = secrets.token_urlsafe(24)
        await _apply_sample(client, bare, token=token, key=key)
        _introduce(stack, bare)
        review = _Walk(client, local_pull_requests(repository, clock=_CLOCK), ask=ask)
        name = await _post_bundle(stack, token=token, key=key)
        say(f"CI posted {sample.IMAGE}:{sample.NEW_TAG} to the webhook: Bundle {name}\n")
        timeline = await review.follow(name)
        await _conclude(repository, timeline, before.commit)
        say(_NEXT)
        if ask or keep:
            say(f"\nstill running:\n  export KUBECONFIG={stack.plane.kubeconfig}\n  kardinal status {sample.APP}")
        if keep:
            say("stop with Ctrl-C")
            with stop_signals() as stopped:
                await stopped.wait()
        elif ask:
            say("\nPress Enter to stop.")
            await _line()


@asynccontextmanager
async def _directory() -> AsyncIterator[Path]:
    path = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="kardinal-demo-"))
    try:
        yield path
    finally:
        await asyncio.to_thread(shutil.rmtree, path)


def _create_sample(bare: Path) -> None:
    create_bare_repository(bare, sample.files(), message="Run podinfo in three environments", clock=_CLOCK)


async def _apply_sample(client: Client, bare: Path, *, token: str, key: str) -> None:
    for resource, body in (
        (SECRET, sample.webhook_secret(token, key)),
        (POLICY_GATE, sample.org_gate(POLICY_NAMESPACE)),
        (PIPELINE, sample.pipeline(bare.as_uri())),
    ):
        await client.apply(resource, body, field_manager="kardinal-demo")


def _introduce(stack: Stack, bare: Path) -> None:
    say(f"sample repository   {bare}")
    say(f"API server          {stack.plane.url} (the local plane; no cluster)")
    say(f"web page            {stack.page.link()}")
    say("rollouts            simulated: no pods run")
    say(f"org gate            staging-soak: {sample.SOAK_SECONDS} s in staging before prod\n")


async def _post_bundle(stack: Stack, *, token: str, key: str) -> str:
    """Create the Bundle by one signed POST to the webhook, as a CI job does, and return its name."""
    if stack.endpoints is None:
        raise CommandError("the controller does not run")
    body = orjson.dumps(
        {
            "pipeline": sample.APP,
            "artifacts": {"images": [{"name": sample.APP, "reference": f"{sample.IMAGE}:{sample.NEW_TAG}"}]},
            "provenance": {
                "commitSHA": "4f2a9c1d7b3e",
                "ciRunURL": "https://ci.example.com/podinfo/1042",
                "author": "dana",
            },
        }
    )
    stamp = str(int(_CLOCK.now().timestamp()))
    delivery = "ci-run-1042"
    text = signed_text(body, timestamp=stamp.encode(), key=delivery.encode())
    headers = {
        "Authorization": f"Bearer {token}",
        TIMESTAMP: stamp,
        IDEMPOTENCY_KEY: delivery,
        SIGNATURE: f"sha256={signature(key.encode(), text)}",
    }
    timeout = aiohttp.ClientTimeout(total=POST_DEADLINE)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.post(
            f"{stack.endpoints.api}/api/v1/namespaces/{NAMESPACE}/bundles", data=body, headers=headers
        ) as response,
    ):
        answer = orjson.loads(await response.read())
        if response.status != 201:
            raise CommandError(f"the webhook answered {response.status}: {answer.get('detail', '')}")
        return str(answer["name"])


class _Walk:
    """Follows one Bundle until it has ended, and reviews and merges its pull requests."""

    def __init__(self, client: Client, pulls: PullRequests, *, ask: bool) -> None:
        self._client = client
        self._pulls = pulls
        self._ask = ask
        self._timeline = Timeline()
        self._began = _CLOCK.monotonic()
        self._reviewed: set[int] = set()
        self._changed = asyncio.Event()
        self._live: Live | None = None

    async def follow(self, bundle: str) -> Timeline:
        async with asyncio.TaskGroup() as tasks:
            watches = [tasks.create_task(self._watch(resource)) for resource in (BUNDLE, POLICY_GATE, PROMOTION_STEP)]
            if console().is_terminal:
                watches.append(tasks.create_task(self._draw()))
            self._open_view()
            try:
                await self._until_finished(bundle)
            finally:
                self._close_view()
            for watch in watches:
                watch.cancel()
        return self._timeline

    async def _until_finished(self, bundle: str) -> None:
        while not (
            self._timeline.bundle
            and self._timeline.bundle.metadata.name == bundle
            and self._timeline.bundle.status.phase not in (None, "Available", "Promoting")
        ):
            for step in list(self._timeline.steps.values()):
                await self._review(step)
            try:
                async with asyncio.timeout(DEADLINE):
                    await self._changed.wait()
            except TimeoutError:
                raise CommandError(f"nothing has changed for {DEADLINE:.0f} s") from None
            self._changed.clear()

    async def _watch(self, resource: ResourceType) -> None:
        async with self._client.watch(resource, NAMESPACE, initial_events=True) as events:
            async for event in events:
                if event.type not in ("ADDED", "MODIFIED"):
                    continue
                line = self._timeline.observe(event.object, seconds=_CLOCK.monotonic() - self._began)
                if line is not None:
                    self._show(line)
                    self._changed.set()

    def _open_view(self) -> None:
        """On a terminal, draw the screen of `kardinal watch` below the lines; elsewhere only the lines are printed."""
        if console().is_terminal:
            self._live = Live("", console=console(), auto_refresh=False, transient=True)
            self._live.start()

    def _close_view(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    async def _draw(self) -> None:
        """Redraw the screen until the task is cancelled."""
        session = Session(self._client, NAMESPACE)
        async with aclosing(changes(session, WATCHED, tick=1.0)) as ticks:
            async for _ in ticks:
                objects = await read_objects(session.reader, NAMESPACE, sample.APP)
                view = status_view(objects, now=_CLOCK.now())
                if self._live is not None:
                    lines = ["", *screen(view, now=_CLOCK.now(), width=console().width)]
                    self._live.update(Text.from_ansi(for_terminal("\n".join(lines))), refresh=True)

    def _show(self, line: Line) -> None:
        console().print(_row(line))

    async def _review(self, step: PromotionStep) -> None:
        """Print the pull request for its reviewer, and merge it."""
        pull = step.status.pull_request
        if step.status.state != "WaitingForMerge" or pull is None or pull.number in self._reviewed:
            return
        self._reviewed.add(pull.number)
        opened = await self._pulls.get(pull.number)
        self._close_view()
        rule = "─" * 78
        say(f"\n{rule}\npull request #{opened.number}: {opened.title}\n\n{plain_text(opened.body)}\n{rule}\n")
        while self._ask and not await _agrees("Merge it, as its reviewer?"):
            say("It stays open, and prod as it is; a reviewer could close it, too.")
        merged = await self._pulls.merge(opened.number, by=getpass.getuser())
        say(f"merged as {(merged.merge_commit or '')[:12]} by {getpass.getuser()}\n")
        self._open_view()


def _row(line: Line) -> str:
    return escaped(f"{line.seconds:6.1f} s  {line.subject:<18} {line.state:<15} {line.message}")


async def _agrees(question: str) -> bool:
    """Ask a yes-or-no question on the terminal, and return the answer; Enter means yes."""
    say(f"{question} [Y/n]: ", nl=False)
    return (await _line()).strip().lower() in ("", "y", "yes")


async def _line() -> str:
    """Read a line from standard input, without a thread, because Ctrl-C could not end a thread that waits for input."""
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        if not typed.done():
            typed.set_result(os.read(0, 4096))

    loop.add_reader(0, read)
    try:
        line = await typed
    finally:
        loop.remove_reader(0)
    if not line:
        raise click.Abort
    return line.decode(errors="replace")


async def _conclude(repository: Repository, timeline: Timeline, before: str) -> None:
    """Print the commits, the change of prod and the timeline. Raises `CommandError` unless all is Verified."""
    say("\ncommits on main, newest first:")
    for commit in await repository.log("main", 10):
        if commit.id == before:
            break
        say(f"  {commit.id[:12]}  {commit.subject}")
        for name, value in commit.trailers.items():
            say(f"                {name}: {value}")
    path = "environments/prod/kustomization.yaml"
    head = await repository.head("main")
    old = ((await repository.read(before, path)) or b"").decode().splitlines()
    new = ((await repository.read(head.commit, path)) or b"").decode().splitlines()
    say("\nwhat changed in prod:")
    for line in difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm="", n=1):
        say(f"  {line}")
    say("\ntime line:")
    for environment in sample.ENVIRONMENTS:
        states = [line for line in timeline.lines if line.subject == environment]
        say(f"  {environment:<8} " + "  ".join(f"{line.state} {line.seconds:.1f}s" for line in _distinct(states)))
    unverified = [name for name in sample.ENVIRONMENTS if not _verified(timeline.steps.get(name))]
    if unverified:
        raise CommandError(f"not verified: {', '.join(unverified)}")
    if not any(sample.NEW_TAG in line for line in new):
        raise CommandError(f"prod does not carry {sample.NEW_TAG}")
    say(f"\nall three environments run {sample.IMAGE}:{sample.NEW_TAG}, verified")


def _distinct(lines: list[Line]) -> list[Line]:
    """Return the first line of each state; `lines` are those of one environment."""
    return [line for index, line in enumerate(lines) if line.state not in {earlier.state for earlier in lines[:index]}]


def _verified(step: PromotionStep | None) -> bool:
    return step is not None and step.status.state == "Verified"
