"""What a client accepts and sends: media types, encodings, methods and paths."""

from __future__ import annotations

import gzip

import orjson
import pytest
import yaml

from tests.local.contract.examples import config_map
from tests.local.contract.wire import Api

covers = pytest.mark.covers

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
YAML = "application/yaml"


async def config_map_path(api: Api) -> str:
    path = api.path("configmaps")
    await api.silent.post(path, config_map("a", key="value"))
    return path


async def widget_path(api: Api) -> str:
    await api.define(api.widgets())
    path = api.path("widgets", group=api.group)
    await api.silent.post(path, api.widget("a", size=2))
    return path


@covers("negotiation", "get", "success")
async def test_json_is_what_is_given_unless_something_else_is_wanted(api: Api) -> None:
    for path in (await config_map_path(api), await widget_path(api)):
        for accept in (
            *("*/*", "application/json", "application/json;charset=utf-8", "application/json;q=0"),
            *("text/html,application/json", "application/cbor, application/json", "application/json;stream=watch"),
            *("application/json;as=Nothing,application/json", "application/yaml;q=0.1,application/json"),
        ):
            found = await api("GET", f"{path}/a", headers={"Accept": accept})
            assert (found.status, found.headers["Content-Type"]) == (200, "application/json"), accept
            listed = await api("GET", path, headers={"Accept": accept}, fieldSelector="metadata.name=a")
            assert listed.status == 200, accept


@covers("negotiation", "get", "refusal")
async def test_what_nobody_can_write_is_not_acceptable(api: Api) -> None:
    for path in (await config_map_path(api), await widget_path(api)):
        for accept in (
            *("text/plain", "application/xml", "text/yaml", "*/json", "json", ";;;", "application/cbor"),
            *("application/json;as=Nothing", "application/json;as=Table", "application/json;as=Table;g=meta.k8s.io"),
            *(f"{TABLE[:-12]}.k8s.io", "application/json;as=Table;v=v2;g=meta.k8s.io"),
            *('application/json;as="Table";v=v1;g=meta.k8s.io', "application/json;stream=x", "application/json;sv=1"),
        ):
            for one in (f"{path}/a", path):
                refused = await api("GET", one, headers={"Accept": accept})
                assert (refused.status, refused.body["reason"]) == (406, "NotAcceptable"), accept


@covers("negotiation", "get", "refusal")
async def test_a_router_wants_media_types_spelled_out(api: Api) -> None:
    builtin, custom = await config_map_path(api), await widget_path(api)
    for accept in ("application/*", "APPLICATION/*"):
        assert (await api("GET", f"{builtin}/a", headers={"Accept": accept})).status == 406
    assert (await api("GET", f"{custom}/a", headers={"Accept": "application/*"})).status == 200
    # The header is judged before anybody looks for the object.
    assert (await api("GET", f"{builtin}/none", headers={"Accept": "text/plain"})).status == 406
    assert (await api("GET", f"{builtin}/none", headers={"Accept": PARTIAL})).status == 404


@covers("negotiation", "get", "success")
async def test_metadata_may_be_had_alone(api: Api) -> None:
    for path in (await config_map_path(api), await widget_path(api)):
        for version in ("v1", "v1beta1"):
            found = await api("GET", f"{path}/a", headers={"Accept": PARTIAL.replace("v=v1", f"v={version}")})
            assert found.body["kind"] == "PartialObjectMetadata"
            assert found.body["apiVersion"] == f"meta.k8s.io/{version}"
            listed = await api("GET", path, headers={"Accept": PARTIAL_LIST.replace("v=v1", f"v={version}")})
            assert listed.body["kind"] == "PartialObjectMetadataList"


@covers("negotiation", "list", "refusal")
async def test_the_metadata_of_a_list_is_a_list(api: Api) -> None:
    builtin, custom = await config_map_path(api), await widget_path(api)
    for path in (builtin, custom):
        refused = await api("GET", path, headers={"Accept": PARTIAL})
        assert (refused.status, refused.body["reason"]) == (406, "NotAcceptable")
    assert (await api("GET", f"{builtin}/a", headers={"Accept": PARTIAL_LIST})).status == 406
    assert (await api("GET", f"{custom}/a", headers={"Accept": PARTIAL_LIST})).status == 500


@covers("negotiation", "get", "success")
async def test_yaml_may_be_had_instead(api: Api) -> None:
    for path in (await config_map_path(api), await widget_path(api)):
        for one in (f"{path}/a", path):
            text = await api.silent("GET", one, headers={"Accept": YAML})
            assert text.headers["Content-Type"] == YAML
            plain = await api.silent("GET", one)
            found = yaml.safe_load(text.body)
            found["metadata"]["resourceVersion"] = plain.revision
            assert orjson.loads(orjson.dumps(found, default=lambda _: "")).keys() == plain.body.keys()
    refused = await api("GET", api.path("configmaps", "none"), headers={"Accept": YAML})
    assert (refused.status, yaml.safe_load(refused.body)["reason"]) == (404, "NotFound")


@covers("negotiation", "create", "success")
async def test_yaml_may_be_sent_instead(api: Api) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: written\ndata:\n  answer: 'yes'\n  n: \"1\"\n"
    created = await api("POST", api.path("configmaps"), text, content_type=YAML)
    assert (created.status, created.body["data"]) == (201, {"answer": "yes", "false": "1"})
    path = await widget_path(api)
    widget = f"apiVersion: {api.group}/v1\nkind: Widget\nmetadata: {{name: b}}\nspec: {{size: 2}}\n---\nkind: More\n"
    assert (await api("POST", path, widget.encode(), content_type=YAML)).body["spec"] == {"size": 2}


@covers("negotiation", "create", "refusal")
async def test_what_nobody_can_read_is_an_unsupported_type(api: Api) -> None:
    builtin, custom = await config_map_path(api), await widget_path(api)
    for media_type in (
        *("text/plain", "application/xml", "application/merge-patch+json", "application/cbor", "*/*", ";"),
        *("application/json;broken", "application/x-www-form-urlencoded"),
    ):
        for path, obj in ((builtin, config_map("b")), (custom, api.widget("b"))):
            refused = await api("POST", path, obj, content_type=media_type)
            assert (refused.status, refused.body["reason"]) == (415, "UnsupportedMediaType"), media_type


@covers("negotiation", "create", "success")
async def test_json_may_be_called_by_several_names(api: Api) -> None:
    path = await config_map_path(api)
    names = ("application/json; charset=utf-8", "application/JSON", "application/json;a=b;c=d")
    for number, media_type in enumerate(names):
        created = await api("POST", path, config_map(f"b{number}", k="v"), content_type=media_type)
        assert created.status == 201, media_type


@covers("negotiation", "patch", "refusal")
async def test_a_patch_says_how_it_is_meant(api: Api) -> None:
    builtin, custom = await config_map_path(api), await widget_path(api)
    for media_type in ("application/json", "text/plain", "application/apply-patch+json"):
        for path in (f"{builtin}/a", f"{custom}/a", f"{builtin}/none", f"{custom}/none"):
            refused = await api("PATCH", path, {}, content_type=media_type)
            assert (refused.status, refused.body["reason"]) == (415, "UnsupportedMediaType"), media_type
    strategic = await api.strategic(f"{custom}/a", {})
    assert strategic.status == 415


@covers("negotiation", "get", "success")
async def test_people_may_have_it_indented(api: Api) -> None:
    path = await config_map_path(api)
    for query, headers, indented in (
        ({}, {}, False),
        ({"pretty": "true"}, {}, True),
        ({"pretty": "1"}, {}, True),
        ({"pretty": "false"}, {"Accept": "application/json;pretty=1"}, True),
        ({"pretty": "perhaps"}, {}, False),
        ({}, {"Accept": "application/json;pretty=1"}, True),
    ):
        answer, _ = await api.silent.open("GET", f"{path}/a", None, query=dict(query), headers=headers)
        async with answer:
            text = await answer.text()
        assert text.startswith('{\n  "') == indented, (query, headers)


@covers("negotiation", "list", "success")
async def test_what_is_large_is_compressed_for_who_can_read_it(api: Api) -> None:
    path = api.path("configmaps")
    await api.silent.post(path, config_map("small", k="x" * 1000))
    await api.silent.post(path, config_map("large", k="x" * 200_000))
    for name, accepted, encoding in (
        ("small", "gzip", None),
        ("large", "gzip", "gzip"),
        ("large", "deflate, gzip", "gzip"),
        ("large", "gzip;q=0.5", None),
        ("large", "deflate", None),
        ("large", "identity", None),
    ):
        found = await api.silent("GET", f"{path}/{name}", headers={"Accept-Encoding": accepted})
        assert found.headers.get("Content-Encoding") == encoding, (name, accepted)
        assert found.body["metadata"]["name"] == name


@covers("negotiation", "create", "refusal")
async def test_a_compressed_body_is_not_understood(api: Api) -> None:
    body = gzip.compress(orjson.dumps(config_map("a")), mtime=0)
    refused = await api("POST", api.path("configmaps"), body, headers={"Content-Encoding": "gzip"})
    assert (refused.status, refused.body["reason"]) == (400, "BadRequest")


@covers("negotiation", "update", "refusal")
@pytest.mark.parametrize("method", ["FOO", "BREW", "PROPFIND", "TRACE"])
async def test_a_method_that_nobody_knows_is_not_allowed(api: Api, method: str) -> None:
    for path in (api.path("configmaps"), api.path("configmaps", "none"), "/version"):
        refused = await api(method, path)
        assert (refused.status, refused.body["reason"]) == (405, "MethodNotAllowed")


@covers("negotiation", "update", "refusal")
async def test_methods_that_a_path_does_not_know_are_refused(api: Api) -> None:
    builtin, custom = await config_map_path(api), await widget_path(api)
    for method, path in (
        ("HEAD", f"{builtin}/a"),
        ("HEAD", builtin),
        ("OPTIONS", builtin),
        ("PUT", builtin),
        ("PATCH", builtin),
        ("POST", f"{builtin}/a"),
        ("POST", api.path("configmaps", namespace=None)),
        ("DELETE", api.path("configmaps", namespace=None)),
        ("OPTIONS", f"{custom}/a"),
        ("OPTIONS", custom),
        ("POST", f"{custom}/a/status"),
        ("DELETE", f"{custom}/a/status"),
    ):
        refused = await api(method, path, {} if method in {"PUT", "PATCH", "POST"} else None)
        assert refused.status == 405, (method, path)
    for method in ("PUT", "PATCH"):
        refused = await api(method, custom, {}, content_type="application/merge-patch+json")
        assert (refused.status, refused.body["reason"]) == (400, "BadRequest")


@covers("negotiation", "get", "refusal")
async def test_a_path_that_leads_nowhere_is_not_found(api: Api) -> None:
    builtin, custom = await config_map_path(api), await widget_path(api)
    for path in (
        *("/api/v1/nothing", "/api/v2", "/apis/apps/v9", "/apis/apps/v1/nothing", "/api/v1/configmaps/a"),
        *(f"{builtin}/a/nothing", f"{builtin}/a/status", f"{builtin}/a%2Fb", f"{builtin}x"),
        *("/nothing", "/apis/none.example.com/v1/things", f"/apis/{api.group}/v9/widgets"),
        *(
            f"/apis/{api.group}/v1/things",
            f"/apis/{api.group}/v1/widgets/a",
            f"{custom}/a/scale",
            f"{custom}/a/nothing",
        ),
    ):
        refused = await api.get(path)
        assert refused.status == 404, path


@covers("negotiation", "get", "success")
async def test_a_slash_at_the_end_changes_nothing(api: Api) -> None:
    path = await config_map_path(api)
    assert (await api.get(f"{path}/a/")).status == 200


@covers("negotiation", "get", "success")
@pytest.mark.differs("protobuf-answers")
async def test_an_answer_in_protobuf_is_given_by_a_real_server_only(api: Api) -> None:
    path = await config_map_path(api)
    protobuf = "application/vnd.kubernetes.protobuf"
    preferred = await api.silent("GET", f"{path}/a", headers={"Accept": f"{protobuf},application/json"})
    alone = await api.silent("GET", f"{path}/a", headers={"Accept": protobuf})
    heard = (preferred.headers["Content-Type"], alone.status)
    api.note("protobuf", list(heard))
    assert heard == ((protobuf, 200) if api.real else ("application/json", 406))
