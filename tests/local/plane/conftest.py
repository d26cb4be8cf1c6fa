"""A client of the plane as admin, and a custom kind that it serves."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kardinal_local.plane import LocalPlane
from tests.local.plane.wire import WIDGETS, Http, session_for, widget_definition


@pytest.fixture
async def http(plane: LocalPlane) -> AsyncIterator[Http]:
    """Requests as admin."""
    async with session_for(plane.kubeconfig) as session:
        yield Http(session)


@pytest.fixture
async def widgets(http: Http) -> str:
    """The path of a served custom kind."""
    await http.define(widget_definition())
    return WIDGETS
