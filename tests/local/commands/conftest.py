"""The commands of `kardinal_local` as their users meet them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.resilience.processes import Shell
from tests.support.commands import KARDINAL


@pytest.fixture
async def shell(commands: None, tmp_path: Path) -> AsyncIterator[Shell]:
    """Yield a shell that runs forks of `kardinal`; its programs are ended with the test."""
    shell = Shell(tmp_path)
    shell.kardinal = KARDINAL
    yield shell
    await shell.close()
