"""Who may do what: rules, bindings, and that nobody gives away what they do not have."""

from __future__ import annotations

from functools import partial

import pytest

from tests.local.contract.examples import config_map
from tests.local.contract.grants import RBAC, allowed, binding, grant, grant_everywhere, role, rule, subject
from tests.local.contract.wire import Api

covers = pytest.mark.covers

RIGHTS = {"apiGroups": [RBAC], "resources": ["roles", "rolebindings"], "verbs": ["create", "update", "patch"]}


@covers("rbac", "get", "refusal")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/namespaces/NAMESPACE/configmaps"),
        ("GET", "/api/v1/namespaces/NAMESPACE/configmaps/a"),
        ("GET", "/api/v1/configmaps"),
        ("GET", "/api/v1/configmaps?watch=1"),
        ("GET", "/api/v1/configmaps?watch=true&fieldSelector=metadata.name%3Da"),
        ("GET", "/api/v1/configmaps?fieldSelector=metadata.name%3D%3Da"),
        ("GET", "/api/v1/configmaps?fieldSelector=metadata.name!%3Da"),
        ("GET", "/api/v1/watch/namespaces/NAMESPACE/configmaps"),
        ("DELETE", "/api/v1/namespaces/NAMESPACE/configmaps"),
        ("POST", "/api/v1/namespaces/NAMESPACE/configmaps"),
        ("PUT", "/api/v1/namespaces/NAMESPACE/configmaps/a"),
        ("PATCH", "/api/v1/namespaces/NAMESPACE/configmaps/a"),
        ("GET", "/api/v1/namespaces/NAMESPACE"),
        ("PUT", "/api/v1/namespaces/NAMESPACE/finalize"),
        ("GET", "/apis/apps/v1/namespaces/NAMESPACE/deployments/a/status"),
        ("GET", "/apis/apps/v1/namespaces/NAMESPACE/deployments/a/scale"),
        ("GET", "/apis/nobody.example.com/v1/things"),
        ("GET", "/apis/nobody.example.com/v1/namespaces/a%22b/things/t"),
        ("GET", "/nothing"),
        ("POST", "/version"),
        ("OPTIONS", "/api/v1/configmaps"),
    ],
)
async def test_what_no_rule_allows_is_refused_whether_it_exists_or_not(api: Api, method: str, path: str) -> None:
    path = path.replace("NAMESPACE", api.namespace)
    refused = await api.as_user("jane")(method, path, {} if method in {"POST", "PUT", "PATCH"} else None)
    assert (refused.status, refused.body["reason"]) == (403, "Forbidden")


@covers("rbac", "discover", "success")
async def test_everybody_may_see_what_there_is(api: Api) -> None:
    jane = api.as_user("jane").silent
    for path in ("/version", "/healthz", "/api", "/apis", "/apis/apps/v1", "/openapi/v3"):
        assert (await jane.get(path)).status == 200


@covers("rbac", "discover", "refusal")
async def test_somebody_unknown_may_not_see_what_there_is(api: Api) -> None:
    stranger = api.as_user("jane", groups=("system:unauthenticated",))
    assert (await stranger.get("/apis")).status == 403


@covers("rbac", "get", "success")
async def test_a_role_allows_what_it_says_and_nothing_else(api: Api) -> None:
    await api.silent.post(api.path("configmaps"), config_map("a"))
    await grant(api, "jane", rule("get", "update", on="configmaps"))
    jane = api.as_user("jane")
    found = await jane.get(api.path("configmaps", "a"))
    assert found.status == 200
    assert (await jane.put(api.path("configmaps", "a"), found.body | {"data": {"key": "value"}})).status == 200
    assert (await jane.get(api.path("configmaps"))).status == 403
    assert (await jane.delete(api.path("configmaps", "a"))).status == 403
    assert (await jane.get(api.path("secrets", "a"))).status == 403
    assert (await jane.get(api.path("configmaps", "a", namespace="default"))).status == 403
    assert (await api.as_user("joe").get(api.path("configmaps", "a"))).status == 403


@covers("rbac", "create", "success")
async def test_a_role_bound_to_a_group_is_its_members(api: Api) -> None:
    await grant(api, "editors", rule("create", on="configmaps"), who=subject("editors"))
    await api.silent.post(
        api.path("rolebindings", group=RBAC), binding("group", "editors", subject("writers", kind="Group"))
    )
    jane = api.as_user("jane", groups=("writers", "readers"))
    await api.until(lambda: _status(jane, api.path("configmaps"), 201))
    assert (await api.as_user("jane").post(api.path("configmaps"), config_map("b"))).status == 403


async def _status(api: Api, path: str, status: int) -> bool:
    return (await api.silent.post(path, config_map("probe"))).status == status


@covers("rbac", "list", "success")
async def test_an_account_without_a_namespace_is_one_of_the_bindings(api: Api) -> None:
    name = f"system:serviceaccount:{api.namespace}:bot"
    await api.silent.post(api.path("roles", group=RBAC), role("reader", rule("list", on="pods")))
    bound = binding("reader", "reader", subject("bot", kind="ServiceAccount"))
    await api.silent.post(api.path("rolebindings", group=RBAC), bound)
    await api.until(lambda: allowed(api, name, rule("list", on="pods"), namespace=api.namespace))
    asked = {"namespace": api.namespace, "verb": "list", "resource": "pods"}
    told = await api.post(
        "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {"user": name, "resourceAttributes": asked}}
    )
    assert "bot" in told.body["status"]["reason"]


@covers("rbac", "patch", "success")
async def test_a_subresource_is_allowed_apart_from_its_object(api: Api) -> None:
    await api.define(api.widgets())
    await api.silent.post(api.path("widgets", group=api.group), api.widget("a", size=2))
    await grant(api, "jane", rule("patch", on="widgets/status", group=api.group))
    jane = api.as_user("jane")
    path = api.path("widgets", "a", group=api.group)
    assert (await jane.merge(f"{path}/status", {"status": {"phase": "Done"}})).status == 200
    assert (await jane.merge(path, {"spec": {"size": 3}})).status == 403


@covers("rbac", "get", "success")
async def test_a_subresource_of_everything_is_allowed_at_once(api: Api) -> None:
    await api.define(api.widgets())
    await api.silent.post(api.path("widgets", group=api.group), api.widget("a", size=2))
    await grant(api, "jane", rule("get", on="*/status", group="*"))
    jane = api.as_user("jane")
    path = api.path("widgets", "a", group=api.group)
    assert (await jane.get(f"{path}/status")).status == 200
    assert (await jane.get(path)).status == 403


@covers("rbac", "list", "success")
async def test_a_name_in_a_rule_allows_that_name_only(api: Api) -> None:
    for name in ("a", "b"):
        await api.silent.post(api.path("configmaps"), config_map(name))
    await grant(api, "jane", rule("get", "list", "watch", "create", "delete", on="configmaps", names=("a",)))
    jane, path = api.as_user("jane"), api.path("configmaps")
    assert (await jane.get(f"{path}/a")).status == 200
    assert (await jane.get(f"{path}/b")).status == 403
    assert (await jane.get(path)).status == 403
    found = await jane.get(path, fieldSelector="metadata.name=a")
    assert [one["metadata"]["name"] for one in found.body["items"]] == ["a"]
    assert (await jane.get(path, fieldSelector="metadata.name=b")).status == 403
    async with jane.watch(path, fieldSelector="metadata.name=a", resourceVersion="0") as events:
        assert await events.names(1) == [("ADDED", "a")]
    # The name of what is created is not known when the question is asked.
    assert (await jane.post(path, config_map("a"))).status == 403
    assert (await jane.delete(path, fieldSelector="metadata.name=a")).status == 403


@covers("rbac", "get", "success")
async def test_a_cluster_role_is_worth_what_its_binding_is(api: Api) -> None:
    name = f"{api.namespace}-reader"
    everywhere = api.path("clusterroles", group=RBAC, namespace=None)
    await api.silent.post(everywhere, role(name, rule("list", on="configmaps"), kind="ClusterRole"))
    api.scope.made(f"{everywhere}/{name}")
    bound = binding("reader", name, subject("jane"), role="ClusterRole")
    await api.silent.post(api.path("rolebindings", group=RBAC), bound)
    await api.until(lambda: allowed(api, "jane", rule("list", on="configmaps"), namespace=api.namespace))
    jane = api.as_user("jane")
    assert (await jane.silent.get(api.path("configmaps"))).status == 200
    assert (await jane.get(api.path("configmaps", namespace="default"))).status == 403
    assert (await jane.get("/api/v1/configmaps")).status == 403


@covers("rbac", "list", "success")
async def test_a_cluster_role_binding_is_for_every_namespace(api: Api) -> None:
    user = f"{api.namespace}-jane"
    await grant_everywhere(api, user, rule("list", on="leases", group="coordination.k8s.io"))
    jane = api.as_user(user).silent
    for path in ("/apis/coordination.k8s.io/v1/leases", api.path("leases", group="coordination.k8s.io")):
        assert (await jane.get(path)).status == 200
    assert (await api.as_user(user).get("/api/v1/configmaps")).status == 403


@covers("rbac", "get", "refusal")
async def test_a_binding_of_a_role_that_is_not_there_says_so(api: Api) -> None:
    bindings = api.path("rolebindings", group=RBAC)
    await api.silent.post(bindings, binding("lost", "lost", subject("jane")))
    jane = api.as_user("jane")
    await api.until(lambda: _told(jane.silent, api.path("pods"), "not found"))
    assert (await jane.get(api.path("pods"))).status == 403


async def _told(api: Api, path: str, text: str) -> bool:
    return text in (await api.get(path)).message


@covers("rbac", "delete", "success")
async def test_rights_end_with_their_role_and_with_their_binding(api: Api) -> None:
    for ended in ("roles", "rolebindings"):
        user = f"jane-of-{ended}"
        await grant(api, user, rule("list", on="configmaps"))
        assert (await api.as_user(user).silent.get(api.path("configmaps"))).status == 200
        assert (await api.delete(api.path(ended, user, group=RBAC))).status == 200
        await api.until(partial(_refused, api.as_user(user), api.path("configmaps")))


async def _refused(api: Api, path: str) -> bool:
    return (await api.silent.get(path)).status == 403


@covers("rbac", "apply", "refusal")
async def test_an_apply_that_creates_needs_the_right_to_create(api: Api) -> None:
    await grant(api, "jane", rule("patch", on="configmaps"))
    jane, path = api.as_user("jane"), api.path("configmaps", "a")
    assert (await jane.apply(path, config_map("a"))).status == 403
    assert (await api.silent.get(path)).status == 404
    await api.silent.apply(path, config_map("a"))
    assert (await jane.apply(path, config_map("a", key="value"))).status == 200


@covers("rbac", "create", "refusal")
@pytest.mark.parametrize(
    "rules",
    [
        [rule("get", on="pods secrets")],
        [rule("get", "delete", on="pods secrets", names=("a", "b")), rule("*", on="*", group="*")],
        [rule("list", on="pods/log"), rule("get", on="deployments", group="apps")],
        [rule("get", on="secrets"), {"verbs": []}],
    ],
)
async def test_nobody_creates_a_role_beyond_their_own(api: Api, rules: list[dict[str, object]]) -> None:
    await grant(api, "jane", RIGHTS, rule("get", "list", on="pods"))
    refused = await api.as_user("jane").post(api.path("roles", group=RBAC), role("more", *rules))
    assert (refused.status, refused.body["reason"]) == (403, "Forbidden")
    assert "is attempting to grant RBAC permissions not currently held" in refused.message


@covers("rbac", "create", "success")
async def test_a_role_within_ones_own_may_be_created(api: Api) -> None:
    await grant(api, "jane", RIGHTS, rule("get", "list", on="pods"), rule("get", on="*/status"))
    jane, path = api.as_user("jane"), api.path("roles", group=RBAC)
    assert (await jane.post(path, role("less", rule("get", on="pods", names=("a",))))).status == 201
    assert (await jane.post(path, role("status", rule("get", on="pods/status")))).status == 201


@covers("rbac", "update", "refusal")
async def test_nobody_extends_a_role_beyond_their_own(api: Api) -> None:
    await grant(api, "jane", RIGHTS, rule("get", on="pods"))
    jane, path = api.as_user("jane"), api.path("roles", "ours", group=RBAC)
    await jane.silent.post(api.path("roles", group=RBAC), role("ours", rule("get", on="pods")))
    assert (await jane.put(path, role("ours", rule("get", on="secrets")))).status == 403
    assert (await jane.merge(path, {"rules": [rule("get", on="secrets")]})).status == 403
    assert (await jane.apply(path, role("ours", rule("get", on="secrets")), force=True)).status == 403
    assert (await jane.merge(path, {"metadata": {"labels": {"a": "b"}}})).status == 200


@covers("rbac", "update", "refusal")
async def test_even_a_label_of_a_greater_role_is_out_of_reach(api: Api) -> None:
    await grant(api, "jane", RIGHTS, rule("get", on="pods"))
    await api.silent.post(api.path("roles", group=RBAC), role("theirs", rule("get", on="secrets")))
    jane, path = api.as_user("jane"), api.path("roles", "theirs", group=RBAC)
    assert (await jane.merge(path, {"metadata": {"labels": {"a": "b"}}})).status == 403
    assert (await jane.merge(path, {"metadata": {"finalizers": ["example.com/held"]}})).status == 200
    await api.silent.merge(path, {"metadata": {"finalizers": None}})


@covers("rbac", "create", "success")
async def test_the_verb_escalate_allows_any_role(api: Api) -> None:
    await grant(api, "jane", rule("create", "escalate", on="roles", group=RBAC))
    created = await api.as_user("jane").post(api.path("roles", group=RBAC), role("all", rule("*", on="*", group="*")))
    assert created.status == 201


@covers("rbac", "create", "refusal")
@pytest.mark.parametrize(
    ("kind", "name"), [("Role", "secrets"), ("ClusterRole", "cluster-admin"), ("Role", "nope"), ("ClusterRole", "nope")]
)
async def test_nobody_binds_a_role_beyond_their_own(api: Api, kind: str, name: str) -> None:
    await grant(api, "jane", RIGHTS, rule("get", on="pods"))
    await api.silent.post(api.path("roles", group=RBAC), role("secrets", rule("get", on="secrets")))
    await api.until(lambda: _knows(api, "secrets"))
    bound = binding("b", name, subject("jane"), role=kind)
    refused = await api.as_user("jane").post(api.path("rolebindings", group=RBAC), bound)
    assert refused.status == (404 if name == "nope" else 403)


async def _knows(api: Api, name: str) -> bool:
    """Whether the real server's authorizer has heard of a role."""
    probe = binding("probe", name, subject("prober"))
    refused = await api.as_user("jane").silent.post(api.path("rolebindings", group=RBAC), probe)
    return refused.status == 403


@covers("rbac", "create", "success")
async def test_the_verb_bind_allows_to_bind_the_role_it_names(api: Api) -> None:
    bind = {**rule("bind", on="clusterroles", group=RBAC, names=("view",))}
    await grant(api, "jane", rule("create", on="rolebindings", group=RBAC), bind)
    jane, path = api.as_user("jane"), api.path("rolebindings", group=RBAC)
    assert (await jane.post(path, binding("viewer", "view", subject("joe"), role="ClusterRole"))).status == 201
    assert (await jane.post(path, binding("editor", "edit", subject("joe"), role="ClusterRole"))).status == 403


@covers("rbac", "create", "refusal")
async def test_a_role_made_of_others_takes_an_administrator(api: Api) -> None:
    user = f"{api.namespace}-jane"
    await grant_everywhere(api, user, rule("create", on="clusterroles", group=RBAC))
    gathering = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    refused = await api.as_user(user).post(
        api.path("clusterroles", group=RBAC, namespace=None),
        role(f"{api.namespace}-all", kind="ClusterRole", aggregationRule=gathering),
    )
    assert refused.message.endswith("must have cluster-admin privileges to use the aggregationRule")


@covers("rbac", "create", "refusal")
@pytest.mark.parametrize(
    "rules",
    [
        [{"verbs": ["get"], "resources": ["pods"]}],
        [{"verbs": ["get"], "apiGroups": [""]}],
        [{"apiGroups": [""], "resources": ["pods"]}],
        [{"verbs": ["get"], "nonResourceURLs": ["/x"]}],
        [{"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["pods"], "apiGroups": [""]}, {}],
    ],
)
async def test_a_rule_has_to_make_sense(api: Api, rules: list[dict[str, object]]) -> None:
    refused = await api.post(api.path("roles", group=RBAC), role("r", *rules))
    assert (refused.status, refused.body["reason"]) == (422, "Invalid")


@covers("rbac", "create", "refusal")
@pytest.mark.parametrize(
    "changes",
    [
        {"roleRef": {}},
        {"roleRef": {"kind": "Foo", "name": "x", "apiGroup": "other"}},
        {"subjects": [{"kind": "User"}, {"kind": "Foo", "name": "f"}]},
        {
            "subjects": [
                {"kind": "ServiceAccount", "name": "A B"},
                {"kind": "ServiceAccount", "name": "a", "apiGroup": "q"},
            ]
        },
        {"subjects": [{"kind": "Group", "name": "f", "apiGroup": "q"}, {"kind": "User", "name": "f", "apiGroup": "q"}]},
    ],
)
async def test_a_binding_has_to_make_sense(api: Api, changes: dict[str, object]) -> None:
    refused = await api.post(api.path("rolebindings", group=RBAC), binding("b", "x", subject("jane")) | changes)
    assert (refused.status, refused.body["reason"]) == (422, "Invalid")


@covers("rbac", "create", "refusal")
async def test_a_cluster_role_binding_binds_cluster_roles_to_whole_names(api: Api) -> None:
    bound = binding(f"{api.namespace}-b", "x", subject("a", kind="ServiceAccount"), kind="ClusterRoleBinding")
    refused = await api.post(api.path("clusterrolebindings", group=RBAC, namespace=None), bound)
    assert refused.causes == [
        ("FieldValueNotSupported", "roleRef.kind"),
        ("FieldValueRequired", "subjects[0].namespace"),
    ]


@covers("rbac", "create", "success")
async def test_what_a_binding_leaves_out_is_filled_in(api: Api) -> None:
    bound = binding("b", "x", subject("jane"), subject("crew", kind="Group"), subject("bot", kind="ServiceAccount"))
    del bound["roleRef"]["apiGroup"]
    created = await api.post(api.path("rolebindings", group=RBAC), bound)
    assert created.body["roleRef"]["apiGroup"] == RBAC
    assert [one.get("apiGroup") for one in created.body["subjects"]] == [RBAC, RBAC, None]


@covers("rbac", "update", "refusal")
async def test_a_binding_keeps_its_role(api: Api) -> None:
    path = api.path("rolebindings", group=RBAC)
    await api.post(path, binding("b", "x", subject("jane")))
    refused = await api.put(f"{path}/b", binding("b", "y", subject("jane")))
    assert refused.causes == [("FieldValueInvalid", "roleRef")]


@covers("rbac", "create", "success")
async def test_a_role_without_rules_says_so(api: Api) -> None:
    created = await api.post(api.path("roles", group=RBAC), {"metadata": {"name": "Any:thing"}})
    assert created.body["rules"] is None


@covers("rbac", "update", "success")
async def test_a_role_made_of_others_follows_them(api: Api) -> None:
    path, label = api.path("clusterroles", group=RBAC, namespace=None), f"{api.group}/part"
    whole, part = f"{api.namespace}-whole", f"{api.namespace}-part"
    gathering = {"clusterRoleSelectors": [{"matchLabels": {label: "yes"}}]}
    for name in (whole, part):
        api.scope.made(f"{path}/{name}")
    await api.silent.post(path, role(whole, kind="ClusterRole", aggregationRule=gathering))
    piece = role(part, rule("get", on="pods"), kind="ClusterRole")
    piece["metadata"]["labels"] = {label: "yes"}
    await api.silent.post(path, piece)
    await api.until(lambda: _rules(api, f"{path}/{whole}", 1))
    assert (await api.get(f"{path}/{whole}")).body["rules"] == [rule("get", on="pods")]
    await api.silent.merge(f"{path}/{part}", {"metadata": {"labels": {label: "no"}}})
    await api.until(lambda: _rules(api, f"{path}/{whole}", 0))


async def _rules(api: Api, path: str, number: int) -> bool:
    return len((await api.silent.get(path)).body["rules"] or ()) == number


@covers("rbac", "get", "success")
async def test_whoever_may_view_may_view_what_a_definition_brings(api: Api) -> None:
    path, name = api.path("clusterroles", group=RBAC, namespace=None), f"{api.namespace}-view"
    api.scope.made(f"{path}/{name}")
    part = role(name, rule("list", on="widgets", group=api.group), kind="ClusterRole")
    part["metadata"]["labels"] = {f"{RBAC}/aggregate-to-view": "true"}
    await api.silent.post(path, part)
    bindings = api.path("rolebindings", group=RBAC)
    for user in ("view", "edit", "admin"):
        await api.silent.post(bindings, binding(user, user, subject(user), role="ClusterRole"))
        listing = rule("list", on="widgets", group=api.group)
        await api.until(partial(allowed, api, user, listing, namespace=api.namespace))
