"""The operations of a fake GitLab, each with the page that documents it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from tests.hosts.fakes.gitlab_state import MergeRequest, Note, Pipeline, Project, Status
from tests.hosts.fakes.repository import Conflict
from tests.hosts.fakes.server import Refusal, Reply

__all__ = ["OPERATIONS", "Call", "Operation", "refuse"]

_DOCS = "https://docs.gitlab.com/api"
_PROJECT = "/projects/{id}"
_ALL = f"{_PROJECT}/merge_requests"
_ONE = f"{_ALL}/{{iid}}"
_FINAL = ("success", "failed", "canceled", "skipped")


@dataclass(frozen=True)
class Call:
    """One request of a user who may see the project."""

    project: Project
    user: str
    url: str
    values: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def request(self) -> MergeRequest:
        iid = self.values["iid"]
        found = self.project.requests.get(int(iid)) if iid.isdecimal() else None
        if found is None:
            raise refuse(404, "404 Not found")
        self.project.follow(found)
        return found

    def writes(self) -> None:
        if self.project.access_level < 30:
            raise refuse(403, "403 Forbidden")

    def page(self, items: list[Any]) -> Reply:
        """Return one page of a list: https://docs.gitlab.com/api/rest/#pagination ."""
        size = int(self.query.get("per_page", 20))
        number = int(self.query.get("page", 1))
        more = len(items) > number * size
        headers = {"Link": f'<{self.url}/next?page={number + 1}>; rel="next"'} if more else {}
        return Reply(200, items[(number - 1) * size : number * size], headers)


@dataclass(frozen=True)
class Operation:
    """An operation: what it does, the page that has it, and the parameters that the page lists."""

    perform: Callable[[Call], Reply]
    page: str
    parameters: frozenset[str] = frozenset()


def refuse(status: int, message: object) -> Refusal:
    return Refusal(status, {"message": message})


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _user(name: str | None) -> dict[str, Any] | None:
    return None if name is None else {"id": 1, "username": name, "name": name, "state": "active"}


def _shown_pipeline(pipeline: Pipeline | None) -> dict[str, Any] | None:
    if pipeline is None:
        return None
    return {"id": pipeline.identifier, "sha": pipeline.sha, "ref": pipeline.ref, "project_id": pipeline.project}


def _shown(call: Call, request: MergeRequest) -> dict[str, Any]:
    project = call.project
    status = project.status(request)
    return {
        "id": 9000 + request.iid,
        "iid": request.iid,
        "project_id": project.identifier,
        "title": request.title,
        "draft": request.is_draft,
        "description": request.description,
        "state": request.state,
        "created_at": _time(request.created_at),
        "updated_at": _time(request.created_at),
        "merged_at": _time(request.merged_at),
        "merge_user": _user(request.merged_by),
        "merged_by": _user(request.merged_by),
        "closed_by": _user(request.closed_by),
        "author": _user(request.author),
        "source_branch": request.source,
        "target_branch": request.target,
        "source_project_id": request.fork or project.identifier,
        "target_project_id": project.identifier,
        "labels": sorted(request.labels),
        "reviewers": [_member(project, one) for one in request.reviewers],
        "assignees": [_member(project, one) for one in request.assignees],
        "sha": request.sha,
        "merge_commit_sha": request.merge_commit_sha,
        "squash_commit_sha": request.squash_commit_sha,
        "detailed_merge_status": status,
        "has_conflicts": status == "conflict",
        "merge_error": request.merge_error,
        "head_pipeline": _shown_pipeline(project.head_pipeline(request)),
        "web_url": f"{call.url}/{project.path}/-/merge_requests/{request.iid}",
    }


def _member(project: Project, identifier: int) -> dict[str, Any]:
    name = next(name for name, one in project.users.items() if one == identifier)
    return {"id": identifier, "username": name, "name": name.title(), "state": "active"}


def _users(call: Call) -> Reply:
    """Find by the whole name: https://docs.gitlab.com/api/users/#list-users ."""
    wanted = call.query["username"].casefold()
    return call.page([_member(call.project, one) for name, one in call.project.users.items() if name == wanted])


def _project(call: Call) -> Reply:
    project = call.project
    shown = {
        "id": project.identifier,
        "path_with_namespace": project.path,
        "default_branch": "main",
        "archived": project.archived,
        "merge_requests_access_level": project.merge_requests_access_level,
        "merge_method": project.merge_method,
        "squash_option": project.squash_option,
        "merge_trains_enabled": project.merge_trains,
        "permissions": {"project_access": {"access_level": project.access_level}, "group_access": None},
    }
    return Reply(200, shown)


def _branch(call: Call) -> Reply:
    name = unquote(call.values["branch"])
    if call.project.git.head(name) is None:
        raise refuse(404, "404 Branch Not Found")
    protected = name in call.project.unpushable
    return Reply(200, {"name": name, "protected": protected, "can_push": not protected})


def _own_token(call: Call) -> Reply:
    return Reply(200, {"id": 1, "name": call.user, "active": True, "revoked": False, "scopes": call.project.scopes})


def _compare(call: Call) -> Reply:
    git = call.project.git
    start = call.query["from"]
    end = call.query["to"]
    is_commit = len(end) == 40 and not set(end) - set("0123456789abcdef") and git.exists(end)
    if git.head(start) is None or (git.head(end) is None and not is_commit):
        raise refuse(404, "404 Ref Not Found")
    commits = git.log(start, end) if git.head(end) is not None else []
    diffs = [{"old_path": old, "new_path": new} for old, new in git.compare(start, git.head(end) or end)]
    limit = call.project.diff_limit
    shown = {"commits": commits, "diffs": diffs[:limit], "compare_timeout": len(diffs) > limit}
    return Reply(200, {**shown, "compare_same_ref": start == end})


def _list(call: Call) -> Reply:
    state = call.query.get("state", "all")
    found = [
        _shown(call, request)
        for request in call.project.requests.values()
        if state in ("all", request.state)
        and call.query.get("source_branch", request.source) == request.source
        and call.query.get("target_branch", request.target) == request.target
    ]
    return call.page(sorted(found, key=lambda one: -int(one["iid"])))


def _create(call: Call) -> Reply:
    call.writes()
    project = call.project
    source = call.body["source_branch"]
    target = call.body["target_branch"]
    for request in project.requests.values():
        if request.state == "opened" and not request.fork and (request.source, request.target) == (source, target):
            raise refuse(409, [f"Another open merge request already exists for this source branch: !{request.iid}"])
    if project.git.head(source) is None:
        raise refuse(400, {"source_branch": ["does not exist"]})
    iid = project.open(
        source=source,
        target=target,
        title=call.body["title"],
        description=call.body.get("description", ""),
        by=call.user,
    )
    project.requests[iid].labels = _names(call.body.get("labels", ""))
    return Reply(201, _shown(call, project.requests[iid]))


def _get(call: Call) -> Reply:
    request = call.request
    shown = _shown(call, call.request)
    if call.query.get("include_rebase_in_progress") == "true":
        request.rebase_looks = max(request.rebase_looks - 1, 0)
        shown["rebase_in_progress"] = request.rebase_looks > 0
    return Reply(200, shown)


def _update(call: Call) -> Reply:
    call.writes()
    request = call.request
    body = call.body
    request.title, request.description = body.get("title", request.title), body.get("description", request.description)
    request.labels = [name for name in request.labels if name not in _names(body.get("remove_labels", ""))]
    added = [name for name in _names(body.get("add_labels", "")) if name not in request.labels]
    request.labels += added
    request.told += added
    for name, people in (("reviewer_ids", request.reviewers), ("assignee_ids", request.assignees)):
        if name in body:
            _set_people(call.project, request, people, body[name])
    if body.get("state_event") == "close":
        request.state = "closed"
        request.closed_by = call.user
    return Reply(200, _shown(call, request))


def _set_people(project: Project, request: MergeRequest, people: list[int], wanted: list[int]) -> None:
    """Replace the people: without a word, those who may not see the project and all but one are left out."""
    seen = [one for one in wanted if _member(project, one)["username"] not in project.strangers]
    taken = seen if project.takes_several else seen[:1]
    request.told += [str(one) for one in taken if one not in people]
    people[:] = taken


def _merge(call: Call) -> Reply:
    request = call.request
    project = call.project
    if project.access_level < 30:
        raise refuse(401, "401 Unauthorized")
    status = project.status(request)
    if status in ("not_open", "ci_must_pass", "need_rebase", "broken_status", "draft_status"):
        raise refuse(405, "405 Method Not Allowed")
    if call.body.get("sha", request.sha) != request.sha:
        raise refuse(409, "SHA does not match HEAD of source branch")
    if status == "conflict":
        raise refuse(422, "Branch cannot be merged")
    squash = call.body.get("squash", project.squash_option in ("always", "default_on"))
    try:
        project.merge(
            request.iid,
            squash=squash,
            by=call.user,
            remove_branch=call.body.get("should_remove_source_branch", False),
            squash_message=call.body.get("squash_commit_message", ""),
        )
    except Conflict:
        raise refuse(422, "Branch cannot be merged") from None
    return Reply(200, _shown(call, request))


def _rebase(call: Call) -> Reply:
    call.writes()
    call.project.rebase(call.request.iid)
    return Reply(202, {"rebase_in_progress": True})


def _commits(call: Call) -> Reply:
    return call.page(call.project.git.log(call.request.target, call.request.source))


def _approvals(call: Call) -> Reply:
    found: list[dict[str, Any]] = [
        {"user": _user(name)} | ({"approved_at": _time(at)} if call.project.says_when_approved else {})
        for name, at in call.request.approved_by.items()
    ]
    return Reply(200, {"approved": bool(found), "approved_by": found, "approvals_required": 0, "approvals_left": 0})


def _note(note: Note) -> dict[str, Any]:
    return {
        "id": note.identifier,
        "body": note.body,
        "author": _user(note.author),
        "system": note.system,
        "created_at": _time(note.at),
    }


def _notes(call: Call) -> Reply:
    return call.page([_note(note) for note in call.request.notes])


def _add_note(call: Call) -> Reply:
    made = Note(call.project.next_identifier(), call.user, call.body["body"], call.project.now())
    call.request.notes.append(made)
    return Reply(201, _note(made))


def _edit_note(call: Call) -> Reply:
    for note in call.request.notes:
        if str(note.identifier) == call.values["note_id"]:
            if note.author != call.user:
                raise refuse(403, "403 Forbidden")
            note.body = call.body["body"]
            return Reply(200, _note(note))
    raise refuse(404, "404 Not found")


def _status(status: Status) -> dict[str, Any]:
    return {
        "id": status.identifier,
        "name": status.name,
        "status": status.state,
        "description": status.description,
        "target_url": status.target_url,
        "pipeline_id": status.pipeline,
    }


def _statuses(call: Call) -> Reply:
    commit = call.values["sha"]
    if not call.project.git.exists(commit):
        raise refuse(404, "404 Commit Not Found")
    newest = {(status.name, status.pipeline): status for status in call.project.statuses.get(commit, [])}
    return call.page([_status(status) for status in newest.values()])


def _set_status(call: Call) -> Reply:
    call.writes()
    commit = call.values["sha"]
    body = call.body
    if not call.project.git.exists(commit):
        raise refuse(404, "404 Commit Not Found")
    statuses = call.project.statuses.setdefault(commit, [])
    pipeline = _pipeline(call)
    running = next(
        (
            one
            for one in statuses
            if (one.name, one.pipeline) == (body["name"], pipeline.identifier) and one.state not in _FINAL
        ),
        None,
    )
    if running is not None and running.state == body["state"]:
        reason = 'Status cannot transition via "enqueue"'
        raise refuse(400, f"Cannot transition status via :enqueue from :pending (Reason(s): {reason})")
    made = running or Status(call.project.next_identifier(), pipeline.identifier, body["name"], "", None, None)
    made.state = body["state"]
    made.description = body.get("description")
    made.target_url = body.get("target_url")
    if running is None:
        statuses.append(made)
    return Reply(201, _status(made))


def _pipeline(call: Call) -> Pipeline:
    """Return the newest pipeline of a commit that has what was sent; without a number one is made where there is none.

    With a number that is not of this commit and `ref`, GitLab answers 404; an older one made a pipeline as well:
    https://gitlab.com/gitlab-org/gitlab/-/issues/443254 .
    """
    project = call.project
    commit = call.values["sha"]
    body = call.body
    found = [
        one
        for one in project.pipelines
        if (one.sha, one.project) == (commit, project.identifier)
        and body.get("ref", one.ref) == one.ref
        and body.get("pipeline_id", one.identifier) == one.identifier
    ]
    if found:
        return found[-1]
    if "pipeline_id" in body:
        raise refuse(404, "404 Pipeline for pipeline_id, sha and ref Not Found")
    branch = next((name for name, tip in sorted(project.git.branches().items()) if tip == commit), "main")
    return project.run(commit, body.get("ref", branch))


def _of_commit(call: Call) -> Reply:
    commit = call.values["sha"]
    found = [
        _shown(call, one)
        for one in call.project.requests.values()
        if call.query.get("state", one.state) == one.state and one.sha == commit
    ]
    return call.page([{name: value for name, value in one.items() if name != "head_pipeline"} for one in found])


def _own_user(call: Call) -> Reply:
    return Reply(200, _user(call.user))


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


_PAGES = frozenset({"page", "per_page"})
_MERGE_REQUESTS = f"{_DOCS}/merge_requests/"
_LISTING = frozenset({"state", "source_branch", "target_branch", "order_by", "sort"})
_CREATING = frozenset({"title", "description", "source_branch", "target_branch", "labels", "remove_source_branch"})
_UPDATING = frozenset(
    {"title", "description", "add_labels", "remove_labels", "state_event", "reviewer_ids", "assignee_ids"}
)
_MERGING = frozenset({"sha", "squash", "squash_commit_message", "should_remove_source_branch"})
_STATUS_FIELDS = frozenset({"state", "name", "description", "target_url", "ref", "pipeline_id"})

OPERATIONS: Mapping[tuple[str, str], Operation] = {
    ("GET", _PROJECT): Operation(_project, f"{_DOCS}/projects/"),
    ("GET", f"{_PROJECT}/repository/branches/{{branch}}"): Operation(_branch, f"{_DOCS}/branches/"),
    ("GET", "/personal_access_tokens/self"): Operation(_own_token, f"{_DOCS}/personal_access_tokens/"),
    ("GET", f"{_PROJECT}/repository/compare"): Operation(
        _compare, f"{_DOCS}/repositories/", frozenset({"from", "to", "straight"})
    ),
    ("GET", _ALL): Operation(_list, _MERGE_REQUESTS, _LISTING | _PAGES),
    ("POST", _ALL): Operation(_create, _MERGE_REQUESTS, _CREATING),
    ("GET", _ONE): Operation(_get, _MERGE_REQUESTS, frozenset({"include_rebase_in_progress"})),
    ("PUT", _ONE): Operation(_update, _MERGE_REQUESTS, _UPDATING),
    ("PUT", f"{_ONE}/merge"): Operation(_merge, _MERGE_REQUESTS, _MERGING),
    ("PUT", f"{_ONE}/rebase"): Operation(_rebase, _MERGE_REQUESTS, frozenset({"skip_ci"})),
    ("GET", f"{_ONE}/commits"): Operation(_commits, _MERGE_REQUESTS, _PAGES),
    ("GET", f"{_ONE}/approvals"): Operation(_approvals, f"{_DOCS}/merge_request_approvals/"),
    ("GET", f"{_ONE}/notes"): Operation(_notes, f"{_DOCS}/notes/", _PAGES | {"sort", "order_by"}),
    ("POST", f"{_ONE}/notes"): Operation(_add_note, f"{_DOCS}/notes/", frozenset({"body"})),
    ("PUT", f"{_ONE}/notes/{{note_id}}"): Operation(_edit_note, f"{_DOCS}/notes/", frozenset({"body"})),
    ("GET", f"{_PROJECT}/repository/commits/{{sha}}/statuses"): Operation(_statuses, f"{_DOCS}/commits/", _PAGES),
    ("GET", f"{_PROJECT}/repository/commits/{{sha}}/merge_requests"): Operation(
        _of_commit, f"{_DOCS}/commits/", _PAGES | {"state"}
    ),
    ("POST", f"{_PROJECT}/statuses/{{sha}}"): Operation(_set_status, f"{_DOCS}/commits/", _STATUS_FIELDS),
    ("GET", "/user"): Operation(_own_user, f"{_DOCS}/users/"),
    ("GET", "/users"): Operation(_users, f"{_DOCS}/users/", frozenset({"username"})),
}
