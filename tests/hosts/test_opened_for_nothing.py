"""A host that answers success to an opening and makes nothing is asked again, and what it made is found first."""

from __future__ import annotations

from pathlib import Path

import pytest

from kardinal.scm import PullRequestNotFound
from tests.hosts.fakes.faults import Fault
from tests.hosts.gitlab_host import GitLabHost
from tests.hosts.host import new_pull_request
from tests.support.clock import VirtualClock


async def test_a_merge_request_that_was_answered_and_not_made_is_made_by_the_next_attempt(tmp_path: Path) -> None:
    host = GitLabHost(tmp_path / "gitlab", clock=VirtualClock())
    try:
        host.start()
        host.propose()
        pulls = await host.connect(clock=host.clock)
        host.server.faults.append(Fault("POST", r"/merge_requests$", "nothing"))
        with pytest.raises(PullRequestNotFound) as missing:
            await pulls.open(new_pull_request())
        assert missing.value.transient
        assert (await pulls.open(new_pull_request())).number == 1
        assert (await pulls.open(new_pull_request())).number == 1
        assert len(host.project.requests) == 1
    finally:
        await host.close()
