"""Find the problems of the charts of a Bundle.

The texts of a chart go into manifests, commit messages, pull requests and names, so only the characters of chart names
and versions are allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kardinal.objects.text import cut
from kardinal.promotion.api.bundle import Chart

__all__ = ["chart_problems"]

_NAME = re.compile(r"[A-Za-z0-9]+(?:[._/-]+[A-Za-z0-9]+)*")
_VERSION = re.compile(r"v?[0-9]+(?:\.[0-9]+){0,2}(?:[-+][A-Za-z0-9.+-]+)?")
_REPOSITORY = re.compile(r"(?:(?:https?|oci)://)?[A-Za-z0-9.-]+(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~%/+-]*)?")
_SHOWN = 120


def chart_problems(charts: Sequence[Chart]) -> Iterator[tuple[str, str]]:
    """Yield (field, message) for each chart that cannot be promoted; the field is relative to the spec of a Bundle."""
    first: dict[tuple[str, str], tuple[int, str]] = {}
    for index, chart in enumerate(charts):
        field = f"artifacts.charts[{index}]"
        if not _NAME.fullmatch(chart.name):
            yield (
                f"{field}.name",
                f"{_shown(chart.name)} is no name of a chart: use letters, digits, '.', '_', '-' and '/'",
            )
        if not _VERSION.fullmatch(chart.version):
            yield f"{field}.version", f"{_shown(chart.version)} is no version: write one, such as 1.2.3, and no range"
        if not _REPOSITORY.fullmatch(chart.repository):
            yield (
                f"{field}.repository",
                f"{_shown(chart.repository)} is no repository of charts: write https:// or oci:// with a host and a "
                "path, without a user",
            )
        before, version = first.setdefault((chart.repository.rstrip("/"), chart.name), (index, chart.version))
        if version != chart.version:
            yield field, f"chart {_shown(chart.name)} is there in another version as well (charts[{before}]); name one"


def _shown(text: str) -> str:
    return repr(cut(text, _SHOWN))
