"""Temporary files of tests are in memory only where they fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import temporary


def test_directory_without_room_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary, "ROOM", 1)
    assert temporary.has_room(tmp_path)
    monkeypatch.setattr(temporary, "ROOM", 1 << 60)
    assert not temporary.has_room(tmp_path)


def test_directory_that_is_not_there_is_not_used(tmp_path: Path) -> None:
    assert not temporary.has_room(tmp_path / "missing")
