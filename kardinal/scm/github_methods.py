"""The methods by which a pull request may be merged into a branch at GitHub.

Three places decide together: the settings of the repository; the rulesets of the branch (`allowed_merge_methods` of the
rule for pull requests, a linear history); and the protection of the branch (a linear history, reported by GraphQL).
"""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel

from kardinal.scm.addresses import quoted
from kardinal.scm.base import MergeMethod
from kardinal.scm.errors import RequestRefused
from kardinal.scm.github_values import ApiRepository
from kardinal.scm.http import HostClient, Priority
from kardinal.scm.values import parsed

__all__ = ["merge_method"]

_ALL: Final[tuple[MergeMethod, ...]] = ("merge", "squash", "rebase")
_RULES: Final = "100"


class ApiParameters(BaseModel):
    allowed_merge_methods: list[str] | None = None


class ApiRule(BaseModel):
    """A rule of a ruleset; the parameters of other kinds of rules are not read."""

    type: str
    parameters: ApiParameters | None = None

    def allows(self, method: MergeMethod) -> bool:
        if self.type == "required_linear_history":
            return method != "merge"
        methods = self.parameters.allowed_merge_methods if self.type == "pull_request" and self.parameters else None
        return methods is None or method in methods


async def merge_method(
    client: HostClient, path: str, base: str, *, wanted: MergeMethod | None, linear: bool
) -> MergeMethod:
    """Return `wanted`, or the first allowed method without it; raises `RequestRefused` if there is none.

    `path` is the path of the repository in the API; `linear`: the branch protection requires a linear history.
    """
    answer = await client.request("access", "GET", path, priority=Priority.MERGE)
    # The settings are visible only to users who may push.
    settings = parsed(ApiRepository, answer.value).merge_methods or list(_ALL)
    query = {"per_page": _RULES}
    listed = await client.request(
        "rules", "GET", f"{path}/rules/branches/{quoted(base)}", query=query, priority=Priority.MERGE
    )
    rules = [parsed(ApiRule, item) for item in listed.value] if isinstance(listed.value, list) else []
    by_rules = [method for method in _ALL if all(rule.allows(method) for rule in rules)]
    if linear and "merge" in by_rules:
        by_rules.remove("merge")
    allowed = [method for method in settings if method in by_rules]
    if wanted is None and allowed:
        return allowed[0]
    if wanted in allowed:
        return wanted
    if not allowed:
        raise RequestRefused(
            f"no merge method is allowed both by the settings of the repository ({', '.join(settings)}) and by the "
            f"rules of {base} ({', '.join(by_rules) or 'none'})",
            remedy="Allow one of them in both",
        )
    where = f"rules of {base}" if wanted in settings else "settings of the repository"
    raise RequestRefused(
        f"the {where} do not allow to merge by {wanted}",
        remedy=f"Set git.mergeMethod to {' or '.join(allowed)}, or leave it out",
    )
