"""The operations of a fake GitHub, each under the template that GitHub's OpenAPI description has for it.

What is refused, and with which text: https://docs.github.com/en/rest/pulls/pulls and the pages beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from tests.hosts.fakes.github_state import Comment, Identity, Project, Pull, Status
from tests.hosts.fakes.github_views import View
from tests.hosts.fakes.repository import Conflict
from tests.hosts.fakes.server import Refusal, Reply

if TYPE_CHECKING:
    from tests.hosts.fakes.github import FakeGitHub

__all__ = ["OPERATIONS", "Call", "refuse"]

_REPOSITORY = "/repos/{owner}/{repo}"
_PULL = f"{_REPOSITORY}/pulls/{{pull_number}}"
_ISSUE = f"{_REPOSITORY}/issues/{{issue_number}}"
_METHOD_NAMES = {"merge": "Merge commits are", "squash": "Squash merges are", "rebase": "Rebase merges are"}


@dataclass(frozen=True)
class Call:
    """One request that may be performed."""

    host: FakeGitHub
    project: Project
    view: View
    identity: Identity
    values: Mapping[str, str]
    query: Mapping[str, str]
    body: Any

    @property
    def pull(self) -> Pull:
        """Return the pull request that the path names; the parameter has two names."""
        number = self.values.get("pull_number") or self.values["issue_number"]
        pull = self.project.pulls.get(int(number)) if number.isdecimal() else None
        if pull is None:
            raise refuse(404, "Not Found")
        self.project.follow(pull)
        return pull

    def page(self, items: list[Any]) -> Reply:
        """Return one page of a list, with the link to the next."""
        size = int(self.query.get("per_page", 30))
        number = int(self.query.get("page", 1))
        shown = items[(number - 1) * size : number * size]
        more = len(items) > number * size
        headers = {"Link": f'<{self.host.url}/next?page={number + 1}>; rel="next"'} if more else {}
        return Reply(200, shown, headers)


def refuse(
    status: int, message: str, *, errors: list[dict[str, str]] | None = None, headers: Mapping[str, str] | None = None
) -> Refusal:
    """Return a refusal in GitHub's form."""
    body: dict[str, Any] = {
        "message": message,
        "documentation_url": "https://docs.github.com/rest",
        "status": str(status),
    }
    if errors is not None:
        body["errors"] = errors
    return Refusal(status, body, headers)


def _invalid(message: str = "", *, field: str = "") -> Refusal:
    error = {"resource": "PullRequest", "code": "custom" if message else "invalid"}
    error |= {"message": message} if message else {"field": field}
    return refuse(422, "Validation Failed", errors=[error])


def _list_pulls(call: Call) -> Reply:
    state = call.query.get("state", "open")
    head = call.query.get("head", "")
    found = []
    for pull in call.project.pulls.values():
        call.project.follow(pull)
        label = f"{(pull.fork or call.project.full_name).partition('/')[0]}:{pull.head}"
        if (state in ("all", pull.state)) and head in ("", label) and call.query.get("base", pull.base) == pull.base:
            found.append(call.view.pull(pull, whole=False))
    newest_first = call.query.get("direction", "desc" if call.query.get("sort", "created") == "created" else "asc")
    return call.page(sorted(found, key=lambda shown: int(shown["number"]), reverse=newest_first == "desc"))


def _create_pull(call: Call) -> Reply:
    project = call.project
    head = call.body.get("head")
    base = call.body.get("base")
    if head is None or project.git.head(head) is None:
        raise _invalid(field="head")
    if base is None or project.git.head(base) is None:
        raise _invalid(field="base")
    for pull in project.pulls.values():
        if pull.state == "open" and not pull.fork and (pull.head, pull.base) == (head, base):
            raise _invalid(f"A pull request already exists for {project.owner}:{head}.")
    if project.git.ahead(base, head) == 0:
        raise _invalid(f"No commits between {base} and {head}")
    if call.body.get("draft") and not project.has_drafts:
        raise refuse(422, "Draft pull requests are not supported in this repository.")
    made = project.open(
        head=head, base=base, title=call.body["title"], body=call.body.get("body") or "", by=call.identity.login
    )
    made.draft = call.body.get("draft", False)
    return Reply(201, call.view.pull(made, whole=True))


def _get_pull(call: Call) -> Reply:
    return Reply(200, call.view.pull(call.pull, whole=True))


def _update_pull(call: Call) -> Reply:
    pull = call.pull
    pull.title, pull.body = call.body.get("title", pull.title), call.body.get("body", pull.body) or ""
    wanted = call.body.get("state", pull.state)
    if wanted == "open" and pull.merged_at is not None:
        raise _invalid("Cannot reopen a merged pull request")
    pull.closed_by = call.identity.login if wanted == "closed" != pull.state else pull.closed_by
    pull.state = wanted
    return Reply(200, call.view.pull(pull, whole=True))


def _merge_pull(call: Call) -> Reply:
    pull = call.pull
    method = call.body.get("merge_method", "merge")
    if pull.state != "open":
        raise refuse(405, "Pull Request is not mergeable")
    if call.body.get("sha", pull.head_sha) != pull.head_sha:
        raise refuse(409, "Head branch was modified. Review and try the merge again.")
    if pull.base in call.project.queues:
        raise refuse(405, "Repository rule violations found\n\nChanges must be made through the merge queue\n\n")
    if method not in call.project.methods:
        raise refuse(405, f"{_METHOD_NAMES[method]} not allowed on this repository.")
    if not call.project.allows(pull.base, method):
        raise refuse(405, "Repository rule violations found")
    obstacle = call.project.obstacle(pull)
    if obstacle:
        raise refuse(405, obstacle)
    if call.project.is_behind(pull):
        raise refuse(405, 'Required status check "kardinal" is expected.')
    message = "\n\n".join(filter(None, [call.body.get("commit_title"), call.body.get("commit_message")]))
    try:
        call.project.merge(pull.number, method, by=call.identity.login, message=message or None)
    except Conflict:
        raise refuse(405, "This branch can't be rebased" if method == "rebase" else "Merge conflict") from None
    return Reply(200, {"sha": pull.merge_commit_sha, "merged": True, "message": "Pull Request successfully merged"})


def _update_branch(call: Call) -> Reply:
    pull = call.pull
    project = call.project
    if call.body.get("expected_head_sha", pull.head_sha) != pull.head_sha:
        raise refuse(422, "expected head sha didn't match current head ref.")
    if project.git.is_ancestor(project.git.head(pull.base) or "", pull.head_sha):
        raise refuse(422, "There are no new commits on the base branch.")
    try:
        project.update_branch(pull.number)
    except Conflict:
        raise refuse(422, "merge conflict between base and head") from None
    return Reply(202, {"message": "Updating pull request branch.", "url": "https://github.com"})


def _reviews(call: Call) -> Reply:
    return call.page([call.view.review(call.pull, index, review) for index, review in enumerate(call.pull.reviews)])


def _issue(call: Call) -> Reply:
    return Reply(200, call.view.issue(call.pull))


def _comments(call: Call) -> Reply:
    return call.page([call.view.comment(comment) for comment in call.pull.comments])


def _create_comment(call: Call) -> Reply:
    made = Comment(call.project.identifier(), call.identity.login, call.body["body"], call.identity.app)
    call.pull.comments.append(made)
    return Reply(201, call.view.comment(made))


def _edit_comment(call: Call) -> Reply:
    for pull in call.project.pulls.values():
        for comment in pull.comments:
            if str(comment.identifier) == call.values["comment_id"]:
                if comment.login != call.identity.login:
                    raise refuse(403, "Must have admin rights to Repository.")
                comment.body = call.body["body"]
                return Reply(200, call.view.comment(comment))
    raise refuse(404, "Not Found")


def _labels(pull: Pull) -> Reply:
    return Reply(200, [{"name": name} for name in pull.labels])


def _add_labels(call: Call) -> Reply:
    pull = call.pull
    _add(pull, pull.labels, call.body["labels"])
    return _labels(pull)


def _request_reviewers(call: Call) -> Reply:
    """Ask all or none: https://docs.github.com/en/rest/pulls/review-requests#request-reviewers-for-a-pull-request ."""
    pull = call.pull
    project = call.project
    users = call.body.get("reviewers", [])
    teams = call.body.get("team_reviewers", [])
    known = {name.casefold() for name in users} <= project.members and set(teams) <= project.teams
    if pull.author in users or not known:
        # GitHub says why in a body that its description does not have.
        raise Refusal(422, None)
    _add(pull, pull.requested_reviewers, [name.casefold() for name in users])
    _add(pull, pull.requested_teams, teams)
    return Reply(201, call.view.pull(pull, whole=False))


def _add_assignees(call: Call) -> Reply:
    """Leave out those without access: https://docs.github.com/en/rest/issues/assignees#add-assignees-to-an-issue ."""
    pull = call.pull
    _add(pull, pull.assignees, [name for name in call.body["assignees"] if name in call.project.members])
    return Reply(201, call.view.issue(pull))


def _add(pull: Pull, there: list[str], names: list[str]) -> None:
    new = [name for name in names if name not in there]
    there += new
    pull.told += new


def _remove_label(call: Call) -> Reply:
    pull = call.pull
    name = unquote(call.values["name"])
    if name not in pull.labels:
        raise refuse(404, "Label does not exist")
    pull.labels.remove(name)
    return _labels(pull)


def _set_status(call: Call) -> Reply:
    commit = call.values["sha"]
    body = call.body
    if not call.project.git.exists(commit):
        raise refuse(422, f"No commit found for SHA: {commit}")
    description = body.get("description") or ""
    if len(description) > 140:
        raise refuse(
            422, "Validation Failed", errors=[{"resource": "Status", "field": "description", "code": "custom"}]
        )
    made = Status(
        body.get("context", "default"), body["state"], description, body.get("target_url"), call.project.now()
    )
    call.project.statuses.setdefault(commit, []).append(made)
    return Reply(201, call.view.status(made))


def _combined_status(call: Call) -> Reply:
    ref = unquote(call.values["ref"])
    commit = call.project.git.head(ref) or ref
    if not call.project.git.exists(commit):
        raise refuse(404, "Not Found")
    newest = {status.context.casefold(): status for status in call.project.statuses.get(commit, [])}
    reply = call.page([call.view.status(status) for status in newest.values()])
    states = {status.state for status in newest.values()}
    state = "failure" if states & {"failure", "error"} else "success" if states == {"success"} else "pending"
    shown = {"state": state, "sha": commit, "total_count": len(newest), "statuses": reply.body}
    return Reply(200, shown, reply.headers)


def _repository(call: Call) -> Reply:
    write = call.identity.may("contents", "write")
    permissions = None
    if call.identity.app is None:
        permissions = {"admin": False, "maintain": False, "push": write, "triage": write, "pull": True}
    return Reply(200, call.view.repository(permissions))


def _branch_rules(call: Call) -> Reply:
    branch = unquote(call.values["branch"])
    found = [
        {
            "type": rule,
            "ruleset_id": number,
            "ruleset_source": call.project.full_name,
            "ruleset_source_type": "Repository",
            **({"parameters": _pull_request_rule(ruleset.methods)} if rule == "pull_request" else {}),
        }
        for number, ruleset in call.project.rulesets.items()
        for rule in ruleset.rules
        if ruleset.branch == branch
    ]
    return call.page(found)


def _pull_request_rule(methods: tuple[str, ...]) -> dict[str, Any]:
    return {
        "allowed_merge_methods": list(methods or _METHOD_NAMES),
        "dismiss_stale_reviews_on_push": False,
        "require_code_owner_review": False,
        "require_last_push_approval": False,
        "required_approving_review_count": 0,
        "required_review_thread_resolution": False,
    }


def _ruleset(call: Call) -> Reply:
    number = int(call.values["ruleset_id"])
    found = call.project.rulesets.get(number)
    if found is None:
        raise refuse(404, "Not Found")
    shown = {"id": number, "name": "protected", "source": call.project.full_name, "enforcement": "active"}
    return Reply(200, {**shown, "current_user_can_bypass": found.bypass})


def _permission(call: Call) -> Reply:
    login = call.values["username"]
    permission = call.project.collaborators.get(login, "write")
    return Reply(200, {"permission": permission, "role_name": permission, "user": call.view.user(login)})


def _get_reference(call: Call) -> Reply:
    reference = unquote(call.values["ref"])
    commit = call.project.git.head(reference.removeprefix("heads/"))
    if commit is None:
        raise refuse(404, "Not Found")
    return Reply(200, {"ref": f"refs/{reference}", "object": {"type": "commit", "sha": commit}})


def _matching_references(call: Call) -> Reply:
    prefix = unquote(call.values["ref"]).removeprefix("heads/")
    return Reply(
        200,
        [
            {"ref": f"refs/heads/{name}", "object": {"type": "commit", "sha": commit}}
            for name, commit in sorted(call.project.git.branches().items())
            if name.startswith(prefix)
        ],
    )


def _compare(call: Call) -> Reply:
    base, _, commit = unquote(call.values["basehead"]).partition("...")
    git = call.project.git
    if git.head(base) is None or not git.exists(commit):
        raise refuse(404, "Not Found")
    files = [
        {"filename": new, "status": "modified" if old == new else "renamed"}
        | ({} if old == new else {"previous_filename": old})
        for old, new in git.compare(base, commit)
    ]
    return Reply(200, {"status": "ahead", "commits": [], "files": files[:300]})


def _delete_reference(call: Call) -> Reply:
    branch = unquote(call.values["ref"]).removeprefix("heads/")
    if call.project.git.head(branch) is None:
        raise refuse(422, "Reference does not exist")
    call.project.git.delete(branch)
    return Reply(204)


def _user(call: Call) -> Reply:
    if call.identity.app is not None:
        raise refuse(403, "Resource not accessible by integration")
    return Reply(200, call.view.user(call.identity.login))


def _own_app(call: Call) -> Reply:
    app = _app(call)
    return Reply(200, {"id": app.identifier, "slug": app.slug, "name": app.slug, "permissions": app.permissions})


def _installation(call: Call) -> Reply:
    app = _app(call)
    return Reply(200, {"id": app.installation, "app_id": app.identifier, "app_slug": app.slug})


def _mint(call: Call) -> Reply:
    app = _app(call)
    if call.values["installation_id"] != str(app.installation):
        raise refuse(404, "Not Found")
    app.minted += 1
    token = f"ghs_{app.minted}"
    expires = call.project.now() + app.lifetime
    call.host.identities[token] = Identity(f"{app.slug}[bot]", dict(app.permissions), app.identifier, expires)
    shown = {"token": token, "expires_at": expires.strftime("%Y-%m-%dT%H:%M:%SZ"), "permissions": app.permissions}
    return Reply(201, shown)


def _app(call: Call) -> Any:
    if call.identity.app is None or call.identity.permissions:
        raise refuse(401, "A JSON web token could not be decoded")
    return call.host.app


Perform = Callable[[Call], Reply]
OPERATIONS: Mapping[tuple[str, str], tuple[str, str, Perform]] = {
    ("GET", f"{_REPOSITORY}/pulls"): ("pull_requests", "read", _list_pulls),
    ("POST", f"{_REPOSITORY}/pulls"): ("pull_requests", "write", _create_pull),
    ("GET", _PULL): ("pull_requests", "read", _get_pull),
    ("PATCH", _PULL): ("pull_requests", "write", _update_pull),
    ("PUT", f"{_PULL}/merge"): ("contents", "write", _merge_pull),
    ("PUT", f"{_PULL}/update-branch"): ("pull_requests", "write", _update_branch),
    ("GET", f"{_PULL}/reviews"): ("pull_requests", "read", _reviews),
    ("GET", _ISSUE): ("issues", "read", _issue),
    ("GET", f"{_ISSUE}/comments"): ("pull_requests", "read", _comments),
    ("POST", f"{_ISSUE}/comments"): ("pull_requests", "write", _create_comment),
    ("PATCH", f"{_REPOSITORY}/issues/comments/{{comment_id}}"): ("pull_requests", "write", _edit_comment),
    ("POST", f"{_PULL}/requested_reviewers"): ("pull_requests", "write", _request_reviewers),
    ("POST", f"{_ISSUE}/assignees"): ("pull_requests", "write", _add_assignees),
    ("POST", f"{_ISSUE}/labels"): ("pull_requests", "write", _add_labels),
    ("DELETE", f"{_ISSUE}/labels/{{name}}"): ("pull_requests", "write", _remove_label),
    ("POST", f"{_REPOSITORY}/statuses/{{sha}}"): ("statuses", "write", _set_status),
    ("GET", f"{_REPOSITORY}/commits/{{ref}}/status"): ("statuses", "read", _combined_status),
    ("GET", _REPOSITORY): ("metadata", "read", _repository),
    ("GET", f"{_REPOSITORY}/rules/branches/{{branch}}"): ("metadata", "read", _branch_rules),
    ("GET", f"{_REPOSITORY}/rulesets/{{ruleset_id}}"): ("metadata", "read", _ruleset),
    ("GET", f"{_REPOSITORY}/collaborators/{{username}}/permission"): ("metadata", "read", _permission),
    ("GET", f"{_REPOSITORY}/git/ref/{{ref}}"): ("contents", "read", _get_reference),
    ("GET", f"{_REPOSITORY}/git/matching-refs/{{ref}}"): ("contents", "read", _matching_references),
    ("GET", f"{_REPOSITORY}/compare/{{basehead}}"): ("contents", "read", _compare),
    ("DELETE", f"{_REPOSITORY}/git/refs/{{ref}}"): ("contents", "write", _delete_reference),
    ("GET", "/user"): ("metadata", "read", _user),
    ("GET", "/app"): ("app", "", _own_app),
    ("GET", f"{_REPOSITORY}/installation"): ("app", "", _installation),
    ("POST", "/app/installations/{installation_id}/access_tokens"): ("app", "", _mint),
}
"""(method, template) -> the permission and the level that it needs, and what it does."""
