"""Stand in for Prometheus: answer every query with one value, which a test chooses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from tests.gitops.http_server import answering

__all__ = ["Metrics", "running_metrics"]


class Metrics:
    """The answers of a metrics server."""

    url = ""

    def __init__(self) -> None:
        self.success_rate = 100.0
        """Per cent of the requests that succeed."""

    def answer(self, path: str) -> bytes:
        """Answer a query; `vector(1)`, which asks whether the server is there, with 1."""
        value = 1.0 if "query=vector" in path else self.success_rate
        result = {"metric": {}, "value": [0, str(value)]}
        return json.dumps({"status": "success", "data": {"resultType": "vector", "result": [result]}}).encode()


@contextmanager
def running_metrics() -> Iterator[Metrics]:
    """Yield a metrics server that answers for the length of a block."""
    metrics = Metrics()
    with answering(metrics.answer) as metrics.url:
        yield metrics
