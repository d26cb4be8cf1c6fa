"""A screen that is redrawn in place on a terminal. It imports rich, so it is imported only on a terminal."""

from __future__ import annotations

from datetime import datetime

from rich.live import Live
from rich.text import Text

from kardinal.cli.output import width
from kardinal.cli.status.screen import screen
from kardinal.cli.styles import for_terminal
from kardinal.promotion.views.status import StatusView

__all__ = ["Screen"]


class Screen:
    """Draws a view in place of the previous view."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, view: StatusView, *, now: datetime) -> None:
        self._live.update(Text.from_ansi(for_terminal("\n".join(screen(view, now=now, width=width())))), refresh=True)
