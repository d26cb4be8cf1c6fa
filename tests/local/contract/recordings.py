"""The answers of the real server, as they are kept in the repository: one file per test, readable in a review."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

__all__ = ["ROOM", "Recording", "all_recordings", "layout"]

ROOM = Path(__file__).parent / "recordings"

_WIDTH = 150


@dataclass(frozen=True)
class Recording:
    """What the real server of one version answered to one test."""

    server: str
    exchanges: list[dict[str, Any]]

    @classmethod
    def load(cls, path: Path) -> Recording:
        return cls(**orjson.loads(path.read_bytes()))

    def store(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(layout({"server": self.server, "exchanges": self.exchanges}) + "\n")

    @property
    def loose(self) -> int:
        """How many messages it does not compare."""
        return sum(1 for exchange in self.exchanges if exchange.get("loose"))

    @staticmethod
    def path(module: str, test: str) -> Path:
        """Where the recording of a test is; `module` is its file's name without test_."""
        name = test.removesuffix("]").replace("[", "-", 1)
        return ROOM / module / (re.sub(r"[^\w.=-]+", "-", name)[:150] + ".json")


def all_recordings() -> Iterator[tuple[Path, Recording]]:
    """Every recording of the repository."""
    return ((path, Recording.load(path)) for path in sorted(ROOM.rglob("*.json")))


def layout(value: Any, *, indent: int = 0) -> str:
    """JSON in which what fits on a line is on one line."""
    short = orjson.dumps(value).decode()
    if len(short) + indent <= _WIDTH or not isinstance(value, dict | list) or not value:
        return short
    margin = " " * (indent + 2)
    if isinstance(value, list):
        opening, closing = "[]"
        members = [layout(item, indent=indent + 2) for item in value]
    else:
        opening, closing = "{}"
        members = [f"{orjson.dumps(key).decode()}: {layout(item, indent=indent + 2)}" for key, item in value.items()]
    inside = ",\n".join(margin + member for member in members)
    return f"{opening}\n{inside}\n{' ' * indent}{closing}"
