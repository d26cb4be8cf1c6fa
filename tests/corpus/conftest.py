"""Say what the comparison found at the end of a run; reports carry it, because workers are processes of their own."""

from __future__ import annotations

import pytest

FIGURES = "corpus"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, [])]
    for value in (value for report in reports for name, value in report.user_properties if name == FIGURES):
        terminalreporter.write_line(str(value))
