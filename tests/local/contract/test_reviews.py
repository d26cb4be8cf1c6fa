"""Who am I, may I, may they; and acting as somebody else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.grants import RBAC, allowed, grant, grant_everywhere, rule
from tests.local.contract.wire import Api

covers = pytest.mark.covers

AUTHENTICATION = "/apis/authentication.k8s.io/v1"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
MYSELF = f"{AUTHENTICATION}/selfsubjectreviews"


@covers("reviews", "create", "success")
@pytest.mark.parametrize(
    "headers",
    [
        {"Impersonate-User": "jane"},
        {"Impersonate-User": "jane", "Impersonate-Group": "system:authenticated"},
        {"Impersonate-User": "jane", "Impersonate-Uid": "u-1", "Impersonate-Extra-Example.com%2fteam": "blue"},
        {"Impersonate-User": "system:serviceaccount:default:bot"},
        {"Impersonate-User": "system:serviceaccount:default:bot", "Impersonate-Group": "crew"},
    ],
    ids=["plain", "authenticated", "uid-and-extra", "account", "account-with-group"],
)
async def test_a_person_can_ask_who_they_are(api: Api, headers: dict[str, str]) -> None:
    answer = await api("POST", MYSELF, {}, headers=headers)
    assert answer.status == 201
    assert answer.body["status"]["userInfo"]["username"] == headers["Impersonate-User"]


@covers("reviews", "create", "success")
async def test_groups_are_told_in_the_order_in_which_they_were_given(api: Api) -> None:
    answer = await api.as_user("jane", groups=("b", "a")).post(MYSELF, {})
    assert answer.body["status"]["userInfo"]["groups"] == ["b", "a", "system:authenticated"]


@covers("reviews", "create", "refusal")
async def test_nobody_in_particular_may_not_even_ask_who_they_are(api: Api) -> None:
    assert (await api.as_user("system:anonymous").post(MYSELF, {})).status == 403
    assert (await api.as_user("jane", groups=("system:unauthenticated",)).post(MYSELF, {})).status == 403


@covers("reviews", "get", "refusal")
@pytest.mark.parametrize("path", [MYSELF, f"{MYSELF}/x", f"{AUTHORIZATION}/subjectaccessreviews"])
async def test_reviews_are_not_kept(api: Api, path: str) -> None:
    assert (await api.get(path)).status in {404, 405}


@covers("reviews", "create", "success")
async def test_a_person_can_ask_what_they_may_do(api: Api) -> None:
    await grant(api, "jane", rule("get", on="pods"))
    for verb in ("get", "list"):
        asked = {"namespace": api.namespace, "verb": verb, "resource": "pods"}
        answer = await api.as_user("jane").post(
            f"{AUTHORIZATION}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": asked}}
        )
        assert answer.body["status"]["allowed"] is (verb == "get")


@covers("reviews", "create", "success")
@pytest.mark.parametrize(
    "spec",
    [
        {"user": "jane", "nonResourceAttributes": {"path": "/apis/apps", "verb": "get"}},
        {"user": "jane", "groups": ["system:authenticated"], "nonResourceAttributes": {"path": "/api", "verb": "get"}},
        {"user": "jane", "groups": ["system:masters"], "resourceAttributes": {"verb": "*", "resource": "*"}},
        {"groups": ["crew"], "resourceAttributes": {"verb": "get", "resource": "pods"}},
        {
            "user": "jane",
            "uid": "u-1",
            "extra": {"team": ["blue"]},
            "resourceAttributes": {
                "verb": "create",
                "group": "apps",
                "resource": "deployments",
                "subresource": "scale",
            },
        },
    ],
    ids=["path", "path-of-group", "master", "group", "extra"],
)
async def test_a_server_can_ask_what_its_caller_may_do(api: Api, spec: dict[str, Any]) -> None:
    assert (await api.post(f"{AUTHORIZATION}/subjectaccessreviews", {"spec": spec})).status == 201


@covers("reviews", "create", "success")
async def test_an_answer_tells_the_binding_it_comes_from(api: Api) -> None:
    await grant(api, "jane", rule("get", on="pods", names=("a",)))
    for name in ("a", "b"):
        asked = {"namespace": api.namespace, "verb": "get", "resource": "pods", "name": name}
        path = api.path("localsubjectaccessreviews", group="authorization.k8s.io")
        answer = await api.post(
            path,
            {
                "metadata": {"namespace": api.namespace},
                "spec": {"user": "jane", "resourceAttributes": asked},
            },
        )
        assert answer.body["status"]["allowed"] is (name == "a")


@covers("reviews", "create", "success")
async def test_paths_are_allowed_by_their_beginning(api: Api) -> None:
    user = f"{api.namespace}-jane"
    await grant_everywhere(api, user, rule("get", on="nodes"), {"verbs": ["get"], "nonResourceURLs": ["/logs/*", "/x"]})
    for path in ("/logs/a/b", "/logs", "/x", "/x/y"):
        asked = {"user": user, "nonResourceAttributes": {"path": path, "verb": "get"}}
        answer = await api.post(f"{AUTHORIZATION}/subjectaccessreviews", {"spec": asked})
        assert answer.body["status"]["allowed"] is (path in {"/logs/a/b", "/x"})


@covers("reviews", "create", "refusal")
@pytest.mark.parametrize(
    ("plural", "spec"),
    [
        ("selfsubjectaccessreviews", {}),
        ("selfsubjectaccessreviews", {"resourceAttributes": {}, "nonResourceAttributes": {"path": "/x"}}),
        ("subjectaccessreviews", {"resourceAttributes": {"verb": "get", "resource": "pods"}}),
        ("subjectaccessreviews", {}),
        ("selfsubjectrulesreviews", {}),
    ],
)
async def test_a_question_has_to_make_sense(api: Api, plural: str, spec: dict[str, Any]) -> None:
    assert (await api.post(f"{AUTHORIZATION}/{plural}", {"spec": spec})).status in {400, 422}


@covers("reviews", "create", "refusal")
@pytest.mark.parametrize(
    "spec",
    [
        {"user": "jane", "resourceAttributes": {"verb": "get", "resource": "pods"}},
        {"user": "jane", "resourceAttributes": {"namespace": "other", "verb": "get", "resource": "pods"}},
        {"user": "jane", "nonResourceAttributes": {"path": "/", "verb": "get"}},
    ],
)
async def test_a_local_question_is_about_its_namespace(api: Api, spec: dict[str, Any]) -> None:
    path = api.path("localsubjectaccessreviews", group="authorization.k8s.io")
    assert (await api.post(path, {"spec": spec})).status == 422


@covers("reviews", "create", "refusal")
async def test_a_local_question_needs_a_namespace(api: Api) -> None:
    assert (await api.post(f"{AUTHORIZATION}/localsubjectaccessreviews", {})).status == 404


@covers("reviews", "create", "success")
async def test_a_person_can_ask_for_all_their_rules(api: Api) -> None:
    # Only one binding beside this one speaks of somebody who is not authenticated; of several, the order is nobody's.
    user = f"{api.namespace}-jane"
    asking = rule("create", on="selfsubjectrulesreviews", group="authorization.k8s.io")
    await grant_everywhere(api, user, asking, rule("get", on="secrets", names=("a", "b")))
    jane = api.as_user(user, groups=("system:unauthenticated",))
    answer = await jane.post(f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {"namespace": api.namespace}})
    assert [one["resources"] for one in answer.body["status"]["resourceRules"]] == [
        ["selfsubjectrulesreviews"],
        ["secrets"],
    ]


@covers("reviews", "get", "refusal")
@pytest.mark.parametrize(
    "headers", [{"Impersonate-Group": "a"}, {"Impersonate-Uid": "a"}, {"Impersonate-Extra-team": "a"}]
)
async def test_groups_alone_are_nobody(api: Api, headers: dict[str, str]) -> None:
    assert (await api("GET", "/api/v1/pods", headers=headers)).status == 400


@covers("reviews", "get", "refusal")
@pytest.mark.parametrize(
    "headers",
    [
        {"Impersonate-User": "joe"},
        {"Impersonate-User": "joe", "Impersonate-Group": "crew"},
        {"Impersonate-User": "system:serviceaccount:default:bot"},
        {"Impersonate-User": "system:serviceaccount:default:bot", "Impersonate-Group": "crew"},
    ],
    ids=["user", "user-with-group", "account", "account-with-group"],
)
async def test_acting_as_somebody_takes_the_right_to(api: Api, headers: dict[str, str]) -> None:
    account = await _account(api)
    assert (await account("GET", "/api/v1/pods", headers=headers)).status == 403


@covers("reviews", "create", "success")
async def test_the_right_to_act_as_somebody_names_them(api: Api) -> None:
    account = await _account(api)
    user = f"system:serviceaccount:{api.namespace}:bot"
    await _allow(
        api, user, rule("impersonate", on="users", names=("joe",)), rule("impersonate", on="groups", names=("crew",))
    )
    # Refused before anything is allowed: the way that succeeded last is the one whose refusal is told.
    for headers in ({"Impersonate-User": "jim"}, {"Impersonate-User": "joe", "Impersonate-Group": "bosses"}):
        assert (await account("POST", MYSELF, {}, headers=headers)).status == 403
    answer = await account("POST", MYSELF, {}, headers={"Impersonate-User": "joe", "Impersonate-Group": "crew"})
    assert answer.body["status"]["userInfo"] == {"username": "joe", "groups": ["crew", "system:authenticated"]}


@covers("reviews", "create", "success")
async def test_the_right_to_act_as_somebody_can_be_kept_to_one_deed(api: Api) -> None:
    account = await _account(api)
    user = f"system:serviceaccount:{api.namespace}:bot"
    await _allow(
        api,
        user,
        rule("impersonate:user-info", on="users", group="authentication.k8s.io", names=("joe",)),
        rule("impersonate-on:user-info:create", on="selfsubjectreviews", group="authentication.k8s.io"),
    )
    as_joe = {"Impersonate-User": "joe"}
    assert (await account("GET", "/version", headers=as_joe)).status == 403
    answer = await account("POST", MYSELF, {}, headers=as_joe)
    assert answer.body["status"]["userInfo"]["username"] == "joe"


@covers("reviews", "create", "success")
async def test_who_runs_on_a_node_may_act_as_that_node_alone(api: Api) -> None:
    await _account(api)
    pod = {"containers": [{"name": "one", "image": "one"}], "nodeName": "contract-node", "serviceAccountName": "bot"}
    await api.silent.post(api.path("pods"), {"metadata": {"name": "agent"}, "spec": pod})
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "agent"}
    issued = await api.silent.post(api.path("serviceaccounts", "bot/token"), {"spec": {"boundObjectRef": bound}})
    agent = api.with_token(issued.body["status"]["token"])
    assert (await agent("POST", MYSELF, {})).status == 201
    node, other = {"Impersonate-User": "system:node:contract-node"}, {"Impersonate-User": "system:node:another"}
    assert (await agent("POST", MYSELF, {}, headers=node)).status == 403
    await _allow(
        api,
        f"system:serviceaccount:{api.namespace}:bot",
        rule("impersonate:associated-node", on="nodes", group="authentication.k8s.io"),
        rule("impersonate-on:associated-node:create", on="selfsubjectreviews", group="authentication.k8s.io"),
    )
    answer = await agent("POST", MYSELF, {}, headers=node)
    assert answer.body["status"]["userInfo"]["username"] == "system:node:contract-node"
    assert (await agent("POST", MYSELF, {}, headers=other)).status == 403
    assert (await agent("GET", "/api/v1/namespaces", headers=node)).status == 403
    # No kubelet is there to see it off.
    await api.silent.delete(api.path("pods", "agent"), gracePeriodSeconds=0)


async def _account(api: Api) -> Api:
    """Somebody with no rights but everybody's, who is not impersonated."""
    accounts = api.path("serviceaccounts")
    await api.silent.post(accounts, {"metadata": {"name": "bot"}})
    issued = await api.silent.post(f"{accounts}/bot/token", {})
    return api.with_token(issued.body["status"]["token"])


async def _allow(api: Api, user: str, *rules: dict[str, Any]) -> None:
    """Rights everywhere; the name of a role may hold no colon that a path would not."""
    name, quiet = f"{api.namespace}-bot", api.silent
    for plural, document in (
        ("clusterroles", {"metadata": {"name": name}, "rules": list(rules)}),
        (
            "clusterrolebindings",
            {
                "metadata": {"name": name},
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "User", "name": user}],
            },
        ),
    ):
        path = api.path(plural, group=RBAC, namespace=None)
        await quiet.post(path, document)
        api.scope.made(f"{path}/{name}")
    await api.until(lambda: allowed(api, user, rules[0]))
