"""The GraphQL side of a fake GitHub: queries are executed on GitHub's published schema, so answers have its types."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import graphql

from tests.hosts.fakes.github_state import Identity, Project, Pull, node_id

__all__ = ["answer_query"]


@cache
def _schema(path: Path) -> graphql.GraphQLSchema:
    document = graphql.parse(path.read_text(), no_location=True)
    return graphql.build_ast_schema(document, assume_valid=True, assume_valid_sdl=True)


def answer_query(path: Path, project: Project, identity: Identity, body: Any) -> dict[str, Any]:
    """Return the answer to a query or a mutation."""
    schema = _schema(path)
    document = graphql.parse(body["query"])
    errors = graphql.validate(schema, document)
    if errors:
        return {"errors": [error.formatted for error in errors]}
    result = graphql.execute_sync(
        schema, document, root_value=_Root(project, identity), variable_values=body.get("variables")
    )
    return dict(result.formatted)


class _Root:
    """The fields of Query and Mutation that a test needs."""

    def __init__(self, project: Project, identity: Identity) -> None:
        self._project = project
        self._identity = identity

    def repository(self, _info: object, *, owner: str, name: str, **_: object) -> dict[str, Any]:
        if (owner, name) != (self._project.owner, self._project.name):
            raise graphql.GraphQLError(f"Could not resolve to a Repository with the name '{owner}/{name}'.")
        return {"mergeQueue": self._queue, "pullRequest": self._pull, "ref": self._ref}

    def enqueuePullRequest(self, _info: object, *, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002, N802
        pull = next((one for one in self._pulls() if node_id("PR", one.number) == input["pullRequestId"]), None)
        if pull is None:
            raise graphql.GraphQLError(f"Could not resolve to a node with the global id of '{input['pullRequestId']}'")
        if not self._identity.may("contents", "write"):
            raise graphql.GraphQLError("Resource not accessible by personal access token")
        if input.get("expectedHeadOid", pull.head_sha) != pull.head_sha:
            raise graphql.GraphQLError("Head branch was modified. Review and try the merge again.")
        if pull.queued:
            raise graphql.GraphQLError("Pull request is already in the queue")
        obstacle = self._project.obstacle(pull)
        if obstacle:
            raise graphql.GraphQLError(obstacle)
        pull.queued = True
        return {"mergeQueueEntry": self._entry(pull)}

    def _queue(self, _info: object, *, branch: str) -> dict[str, Any] | None:
        return {"id": "MQ_1"} if branch in self._project.queues else None

    def _ref(self, _info: object, *, qualifiedName: str) -> dict[str, Any] | None:  # noqa: N803
        branch = qualifiedName.removeprefix("refs/heads/")
        if self._project.git.head(branch) is None:
            return None
        linear = branch in self._project.linear
        closed = branch in self._project.unpushable
        rule = {"viewerCanPush": not closed, "requiresLinearHistory": linear}
        return {"refUpdateRule": rule if linear or closed else None}

    def _pull(self, _info: object, *, number: int) -> dict[str, Any]:
        pull = self._project.pulls.get(number)
        if pull is None:
            raise graphql.GraphQLError(f"Could not resolve to a PullRequest with the number of {number}.")
        self._project.follow(pull)
        committed = self._project.git.committed_at(pull.head_sha)
        return {
            "id": node_id("PR", number),
            "headRefOid": pull.head_sha,
            "mergeQueueEntry": self._entry(pull),
            "commits": lambda _, **__: {"nodes": [{"commit": {"committedDate": _time(committed)}}]},
            "timelineItems": lambda _, **__: {"nodes": self._queue_events(pull)},
        }

    def _queue_events(self, pull: Pull) -> list[dict[str, Any]]:
        """Return the last time that the pull request entered the queue or left it."""
        if pull.queued or pull.removed is None:
            return []
        removed = pull.removed
        actor = {"__typename": "User", "login": removed.by} if removed.by else None
        shown = {"createdAt": _time(removed.at), "reason": removed.reason, "actor": actor}
        return [{"__typename": "RemovedFromMergeQueueEvent", **shown}]

    def _entry(self, pull: Pull) -> dict[str, Any] | None:
        return {"id": node_id("MQE", pull.number), "position": 1, "state": "QUEUED"} if pull.queued else None

    def _pulls(self) -> list[Pull]:
        for pull in self._project.pulls.values():
            self._project.follow(pull)
        return list(self._project.pulls.values())


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
