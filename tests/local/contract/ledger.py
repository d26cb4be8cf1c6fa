"""The ledger: what the local plane does otherwise than a real API server, and means to.

A row is the last resort. It must belong to what the design leaves out (`Item`), and a test must hold both sides of it,
so that it disappears when the difference does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, StringConstraints

__all__ = ["LIMIT", "Row", "load_ledger"]

LIMIT = 30

Item = Literal[
    # What the plane leaves out.
    "admission and conversion webhooks",
    "enforcement of admission policies",
    "aggregation",
    "protobuf responses",
    "CBOR",
    "HTTP/2",
    "pod exec, logs, port-forward",
    "scheduler and kubelet",
    "quotas",
    "priority and fairness",
    "high availability",
    "typed validation of built-in kinds",
    "client certificates",
    # What it does otherwise.
    "one process, one file",
    "CEL cost budgets",
    "CEL libraries",
    "admission",
    "fresher than real",
    "history ends at a restart",
    "no workloads run",
    "texts that are not byte for byte",
]

_Sentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=8)]


class Row(BaseModel):
    """One known difference."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+$")]
    item: Item
    what: _Sentence
    why: _Sentence
    who: _Sentence
    test: Annotated[str, StringConstraints(pattern=r"^tests/[\w/]+\.py::test_\w+$")]


def load_ledger() -> list[Row]:
    """The rows, in the order of the file."""
    path = Path(__file__).with_name("ledger.yaml")
    return [Row.model_validate(row) for row in yaml.load(path.read_bytes(), yaml.CSafeLoader)]
