"""What a run of the contract suite is worth, said at its beginning and its end.

Both are said by the process that the person started: what workers counted comes with their reports.
"""

from __future__ import annotations

import pytest

from tests.local.contract.ledger import load_ledger
from tests.local.contract.recordings import all_recordings
from tests.support.kubectl import kubectl_versions


def pytest_report_header(config: pytest.Config) -> str:
    recordings = [recording for _, recording in all_recordings()]
    versions = sorted({recording.server for recording in recordings}) or ["no server"]
    return (
        f"contract: target {config.getoption('target')}; kubectl {' '.join(kubectl_versions()) or 'missing'}; "
        f"{len(recordings)} recorded cases of {' and '.join(versions)}, "
        f"{sum(len(recording.exchanges) for recording in recordings)} exchanges, "
        f"{sum(recording.loose for recording in recordings)} loosened messages; {len(load_ledger())} ledger rows"
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    ran = [
        value
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        for name, value in report.user_properties
        if name == "exchanges" and report.when == "call"
    ]
    for report in terminalreporter.stats.get("passed", []) + terminalreporter.stats.get("failed", []):
        for name, value in report.user_properties:
            if name == "fuzz" and report.when == "call":
                terminalreporter.write_line(f"fuzz: {value}")
    if ran:
        done = "recorded" if config.getoption("record") else "compared"
        terminalreporter.write_line(
            f"contract: {len(ran)} cases on target {config.getoption('target')}, {sum(ran)} exchanges {done}"
        )
