"""The screen of a terminal that is drawn in place of the one before; imported only where there is a terminal."""

from __future__ import annotations

from datetime import datetime

from rich.live import Live
from rich.text import Text

from kardinal.cli.output import width
from kardinal.cli.status.screen import screen
from kardinal.cli.status.view import View
from kardinal.cli.styles import for_terminal

__all__ = ["Screen"]


class Screen:
    """Draws a view in place of the one before."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, view: View, *, now: datetime) -> None:
        self._live.update(Text.from_ansi(for_terminal("\n".join(screen(view, now=now, width=width())))), refresh=True)
