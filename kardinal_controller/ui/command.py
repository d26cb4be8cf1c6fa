"""`kardinal ui`: the web page on loopback, with the identity of the user's kubeconfig.

It is the server of the controller with informers of its own, which list and watch as the user. The printed link has a
code that is accepted once; the browser gets another one, by a private file and not by its command line, which other
users of the machine could read.
"""

from __future__ import annotations

import asyncio
import html
import os
import shutil
import sys
import tempfile
import webbrowser
from pathlib import Path

import click

from kardinal.cli.errors import CommandError
from kardinal.cli.output import say
from kardinal.cli.ranges import WholeNumber
from kardinal.cli.session import Session, cluster_options, connect, explained
from kardinal.clock import SystemClock
from kardinal.kube import Client, Forbidden, KubeError
from kardinal.objects import GRAPH
from kardinal.promotion.kinds import BUNDLE, PIPELINE, POLICY_GATE, PROMOTION_STEP
from kardinal.promotion.requests import URL
from kardinal.runtime import Manager
from kardinal.runtime.errors import RuntimeFailure
from kardinal.runtime.logging import configure
from kardinal.runtime.process import run
from kardinal_controller.caches import Caches
from kardinal_controller.ui.options import web_page
from kardinal_controller.ui.own_page import OwnPage

__all__ = ["ui"]

_KINDS = (PIPELINE, BUNDLE, GRAPH, PROMOTION_STEP, POLICY_GATE)
"""The kinds that the informers of the page list and watch."""


@click.command()
@cluster_options
@click.option("--port", type=WholeNumber(0, 65535), default=0, help="Port on 127.0.0.1; default: a free one.")
@click.option("--no-browser", is_flag=True, help="Print the link only.")
@click.option(
    "--argocd-url",
    default="",
    metavar="URL",
    callback=lambda context, option, value: web_page(value),
    help="Argo CD, such as https://argocd.example.com: drawers of environments link to their Applications there.",
)
def ui(
    *,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str | None,
    port: int,
    no_browser: bool,
    argocd_url: str,
) -> None:
    """Serve the web page on this machine, with the rights of your kubeconfig.

    It shows the Pipelines of all namespaces, or of one: with -n, and where you may not list all. Its buttons act as
    you. Ends at Ctrl-C.
    """
    configure(level="warning")
    try:
        opens = not no_browser and _has_browser()
        run(_serve((kubeconfig, context, namespace), port=port, argocd=argocd_url, opens=opens))
    except KubeError as error:
        raise explained(error) from error
    except RuntimeFailure as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(
            f"127.0.0.1:{port} cannot be listened on: {error.strerror or error}", remedy="Take a free one: --port 0"
        ) from error


async def _serve(where: tuple[Path | None, str | None, str | None], *, port: int, argocd: str, opens: bool) -> None:
    clock = SystemClock()
    async with connect(*where) as session:
        namespace = await _scope(session)
        manager = Manager(session.client, clock=clock, name="kardinal-ui")
        caches = Caches(manager, namespace=namespace)
        approvals = os.environ.get(URL)
        page = OwnPage(session.client, caches, clock=clock, port=port, argocd=argocd, approvals=approvals)
        manager.add(page)
        manager.add(_Link(page, namespace=namespace, opens=opens))
        await manager.run()


async def _scope(session: Session) -> str | None:
    """Return the namespace of the informers, or None for all. Raises `KubeError` if not even one may be listed."""
    if not session.chosen:
        try:
            await _list_all(session.client, None)
        except Forbidden:
            say(f"You may not list all namespaces: the page shows {session.namespace}. Another: -n NAMESPACE", err=True)
        else:
            return None
    await _list_all(session.client, session.namespace)
    return session.namespace


async def _list_all(client: Client, namespace: str | None) -> None:
    await asyncio.gather(*(client.list(kind, namespace, limit=1) for kind in _KINDS))


class _Link:
    """Prints the link of the page when it is served, and opens it. A runnable of the manager."""

    def __init__(self, page: OwnPage, *, namespace: str | None, opens: bool) -> None:
        self._page = page
        self._namespace = namespace
        self._opens = opens
        self._directory: Path | None = None

    async def start(self) -> None:
        say(self._page.link())
        shown = self._namespace or "all namespaces"
        say(f"It shows {shown}. The link opens one browser; Ctrl-C ends the page.", err=True)
        if self._opens:
            self._directory = await asyncio.to_thread(_open_in_browser, self._page.link())

    async def stop(self) -> None:
        if self._directory is not None:
            await asyncio.to_thread(shutil.rmtree, self._directory, ignore_errors=True)


def _has_browser() -> bool:
    """Return whether a person sits there with a browser that has a window: others would take the terminal."""
    windows = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(windows) and sys.stdout.isatty()


def _open_in_browser(link: str) -> Path:
    """Open a link by a file that only this user can read; returns its directory."""
    directory = Path(tempfile.mkdtemp(prefix="kardinal-ui-"))
    file = directory / "open.html"
    file.touch(mode=0o600)
    target = html.escape(link)
    file.write_text(f'<meta http-equiv="refresh" content="0; url={target}"><a href="{target}">kardinal</a>\n')
    if not webbrowser.open(file.as_uri()):
        say("No browser could be started: open the link.", err=True)
    return directory
