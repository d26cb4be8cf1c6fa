"""The HTTP API of Prometheus, which Thanos, Mimir, VictoriaMetrics and others serve as well (pure).

    POST /api/v1/query         {"status": "success", "data": {"resultType": "vector", "result": [
                               {"value": [1767225600, "0.99"]}]}}
    POST /api/v1/query_range   the same with "matrix" and "values": [[1767225600, "0.99"], …]

Values are strings, among them `NaN`, `+Inf` and `-Inf`. An error has a message for the author of the query, such as the
position of a syntax error; it is quoted in part, because the operator has listed the server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kardinal.bounded import ForeignBytes, JsonLimits, NotJson, OverLimit, decode, mebibytes
from kardinal.objects.text import cut
from kardinal.promotion.metrics.provider import MetricError, MetricProvider, MetricQuery, MetricRequest, Samples

__all__ = ["ANSWERS", "PROMETHEUS"]

ANSWERS = JsonLimits(size=1 << 20, depth=8, containers=30_000, pieces=100_000)
"""The limits of an answer: 10,000 series of one sample, or 30,000 samples of one series."""

FOREIGN = ForeignBytes(
    "answers of metric servers",
    of="metric server that the operator lists",
    size=mebibytes(ANSWERS.size),
    unpacked="asked for uncompressed, never unpacked",
    structure=ANSWERS.structure,
    time="25 s a request, `spec.timeout`",
    held="eight at once",
    decoded="on a thread",
    tests=("attacks/test_metrics.py::test_an_endless_answer_is_cut_off",),
)

_QUOTED = 200
"""The most characters of an error that are quoted."""
_EXPLAINED = frozenset(["bad_data", "execution", "timeout", "canceled"])
"""Types of errors whose message is about the query."""


def _asked(query: MetricQuery) -> MetricRequest:
    form = {"query": query.text, "timeout": f"{query.timeout.total_seconds():g}s"}
    if query.length is None or query.step is None:
        # At the present moment of the server, whose clock may differ.
        return MetricRequest(path="/api/v1/query", form=form)
    end = query.at.timestamp()
    start = end - query.length.total_seconds()
    within = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{query.step.total_seconds():g}"}
    return MetricRequest(path="/api/v1/query_range", form={**form, **within})


def _read(status: int, body: bytes) -> Samples:
    try:
        document = decode(body, ANSWERS)
    except (OverLimit, NotJson) as error:
        wrong = "the answer is too large: " if isinstance(error, OverLimit) else f"the answer has status {status}, and "
        raise MetricError(f"{wrong}{error}") from None
    if not isinstance(document, dict) or document.get("status") not in ("success", "error"):
        raise MetricError(f"the answer with status {status} is none of Prometheus")
    if document["status"] == "error" or status != 200:
        raise MetricError(_problem(document, status))
    data = document.get("data")
    kind = data.get("resultType") if isinstance(data, dict) else None
    result = data.get("result") if isinstance(data, dict) else None
    try:
        if kind == "scalar" and isinstance(result, list):
            return Samples((_number(result),), single=True)
        if kind in ("vector", "matrix") and isinstance(result, list):
            return Samples(tuple(_values(result, kind)), single=kind == "vector" and len(result) <= 1)
    except (KeyError, IndexError, TypeError, ValueError):
        raise MetricError("the answer has a sample that is no number, such as a native histogram") from None
    raise MetricError(f"the query gives a {cut(str(kind), 32)}, which is no number")


def _values(result: list[Any], kind: str) -> Iterator[float]:
    for series in result:
        if kind == "vector":
            yield _number(series["value"])
        else:
            yield from map(_number, series["values"])


def _number(sample: Any) -> float:
    _, text = sample
    if not isinstance(text, str):
        raise TypeError
    return float(text)


def _problem(document: dict[str, Any], status: int) -> str:
    kind = document.get("errorType")
    if kind in _EXPLAINED and isinstance(told := document.get("error"), str):
        return f"the query fails ({kind}): {cut(' '.join(told.split()), _QUOTED)}"
    return f"the server answers {status}"


PROMETHEUS = MetricProvider("prometheus", asked=_asked, read=_read)
