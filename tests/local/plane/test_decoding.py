"""Documents read as Go types: what is written where nothing was given, what is dropped, what cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal_local.plane.builtin import BUILTIN_KINDS
from kardinal_local.plane.builtin.moments import MomentError, micro_time, time
from kardinal_local.plane.builtin.quantities import QuantityError, canonical
from kardinal_local.plane.builtin.typed import BuiltinType
from kardinal_local.plane.errors import Unreadable
from kardinal_local.plane.kinds import Kind

POD = BuiltinType("", "v1", "Pod")
DEPLOYMENT = BuiltinType("apps", "v1", "Deployment")


@pytest.mark.parametrize("kind", BUILTIN_KINDS, ids=lambda kind: kind.qualified)
def test_nothing_is_an_object_of_every_kind(kind: Kind) -> None:
    assert kind.typed is not None
    first, unknown = kind.typed.decode({})
    assert unknown == []
    assert kind.typed.decode(first) == (first, [])
    assert kind.typed.schema["properties"]["metadata"]["properties"]["labels"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("0", "0"),
        ("1000m", "1"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("1500m", "1500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("512Ki", "512Ki"),
        ("0.5Ki", "512"),
        ("100k", "100k"),
        ("12e6", "12e6"),
        ("1000e3", "1e6"),
        ("-2000m", "-2"),
        ("0.1n", "1n"),
        ("1E", "1E"),
    ],
)
def test_an_amount_has_one_spelling(given: str, kept: str) -> None:
    assert canonical(given) == kept


@pytest.mark.parametrize(
    ("given", "complaint"),
    [("", "quantities must match"), ("abc", "quantities must match"), ("1x", "must match"), ("1KK", "suffix")],
)
def test_what_is_no_amount_is_refused(given: str, complaint: str) -> None:
    with pytest.raises(QuantityError, match=complaint):
        canonical(given)


def test_moments_come_back_in_utc() -> None:
    assert time("2026-01-02T03:04:05.678+02:00") == "2026-01-02T01:04:05Z"
    assert micro_time("2026-01-02T03:04:05.678901-01:30") == "2026-01-02T04:34:05.678901Z"


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("", 'cannot parse "" as "2006"'),
        ("2026-13-01T00:00:00Z", "month out of range"),
        ("2026-02-30T00:00:00Z", "day out of range"),
        ("2026-01-01 00:00:00Z", 'cannot parse " 00:00:00Z" as "T"'),
        ("2026-01-01T00:00:00", 'cannot parse "" as "Z07:00"'),
        ("2026-01-01T00:00:00Zx", 'extra text: "x"'),
    ],
)
def test_what_is_no_moment_is_refused_where_reading_stopped(given: str, complaint: str) -> None:
    with pytest.raises(MomentError, match=complaint):
        time(given)


def test_null_is_nothing_and_the_empty_is_dropped_where_its_type_says_so() -> None:
    spec = {"containers": [], "hostNetwork": False, "nodeSelector": {}, "volumes": None, "serviceAccountName": ""}
    decoded, _ = POD.decode({"spec": spec})
    assert decoded["spec"]["containers"] == []
    assert not decoded["spec"].keys() & {"hostNetwork", "nodeSelector", "volumes", "serviceAccountName"}


def test_what_a_pointer_leads_to_is_kept_though_it_is_empty() -> None:
    decoded, _ = DEPLOYMENT.decode({"spec": {"replicas": 0, "paused": False}})
    assert decoded["spec"]["replicas"] == 0
    assert "paused" not in decoded["spec"]


def test_fields_that_a_type_does_not_have_are_told_in_the_order_of_the_document() -> None:
    container: dict[str, Any] = {"name": "a", "imagePullPolcy": "Always", "env": [{"name": "A", "val": "1"}]}
    document = {"metadata": {"nmae": "a"}, "spec": {"containers": [container], "foo": 1}, "bar": 1}
    _, unknown = POD.decode(document)
    assert unknown == [
        "metadata.nmae",
        "spec.containers[0].imagePullPolcy",
        "spec.containers[0].env[0].val",
        "spec.foo",
        "bar",
    ]


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"replicas": "a"}, "unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"),
        ({"replicas": 1.5}, "unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32"),
        ({"replicas": 2**31}, "unmarshal number 2147483648 into Go struct field DeploymentSpec.spec.replicas"),
        (
            {"selector": 3},
            "unmarshal number into Go struct field DeploymentSpec.spec.selector of type v1.LabelSelector",
        ),
        (
            {"template": {"spec": {"containers": {}}}},
            "unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
        ),
        (
            {"template": {"spec": {"containers": [{"ports": [{"protocol": 3}]}]}}},
            "field ContainerPort.spec.template.spec.containers.ports.protocol of type v1.Protocol",
        ),
        (
            {"template": {"metadata": {"labels": {"a": True}}}},
            "unmarshal bool into Go struct field ObjectMeta.spec.template.metadata.labels of type string",
        ),
    ],
)
def test_a_value_of_another_type_cannot_be_read(spec: dict[str, Any], complaint: str) -> None:
    with pytest.raises(Unreadable) as refused:
        DEPLOYMENT.decode({"spec": spec})
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"replicas": "two"}, "unrecognized type: int32"),
        ({"replicas": 1.5}, "cannot convert float64 to int32"),
        ({"paused": 1}, "unrecognized type: bool"),
        ({"template": []}, "cannot restore struct from: slice"),
        ({"selector": {"matchLabels": "a"}}, "cannot restore map from string"),
        ({"template": {"spec": {"containers": {"name": "web"}}}}, "cannot restore slice from map"),
        (
            {"template": {"spec": {"containers": [{"ports": [{"protocol": 3}]}]}}},
            "cannot convert int64 to v1.Protocol",
        ),
        (
            {"strategy": {"rollingUpdate": {"maxSurge": True}}},
            "json: cannot unmarshal bool into Go value of type int32",
        ),
    ],
)
def test_what_was_put_together_in_memory_is_refused_in_other_words(spec: dict[str, Any], complaint: str) -> None:
    with pytest.raises(Unreadable) as refused:
        DEPLOYMENT.decode({"spec": spec})
    assert refused.value.converted == complaint


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.2", "IfNotPresent"),
        ("localhost:5000/nginx", "Always"),
        ("localhost:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:" + "a" * 64, "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_an_image_that_may_change_is_always_pulled(image: str, policy: str) -> None:
    decoded, _ = POD.decode({"spec": {"containers": [{"name": "a", "image": image}]}})
    assert decoded["spec"]["containers"][0]["imagePullPolicy"] == policy
