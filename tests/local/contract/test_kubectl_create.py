"""The generators of `kubectl create`, which write what they make as protobuf from 1.32 on."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.support.kubectl import Kubectl

GENERATORS: dict[str, dict[str, object]] = {
    "configmap x --from-literal=a=b": {"data": {"a": "b"}},
    "cronjob x --image=app:1 --schedule=@daily": {"spec.schedule": "@daily"},
    "deployment x --image=app:1 --replicas=0": {"spec.template.spec.restartPolicy": "Always"},
    "job x --image=app:1": {"spec.completions": 1},
    "ingress x --rule=example.com/path=svc:80": {"spec.rules.0.host": "example.com"},
    "poddisruptionbudget x --selector=app=x --min-available=1": {"spec.minAvailable": 1},
    "priorityclass x --value=7": {"value": 7},
    "quota x --hard=pods=3": {"spec.hard": {"pods": "3"}},
    "role x --verb=get --resource=pods": {"rules.0.verbs": ["get"]},
    "rolebinding x --role=x --user=u": {"subjects.0.kind": "User"},
    "clusterrole x --verb=get --resource=pods": {"rules.0.resources": ["pods"]},
    "clusterrolebinding x --clusterrole=view --group=g": {"subjects.0.name": "g"},
    "secret generic x --from-literal=a=b": {"data": {"a": "Yg=="}, "type": "Opaque"},
    "secret docker-registry x --docker-username=u --docker-password=p": {"type": "kubernetes.io/dockerconfigjson"},
    "service clusterip x --tcp=80": {"spec.type": "ClusterIP"},
    "service externalname x --external-name=example.com": {"spec.externalName": "example.com"},
    "serviceaccount x": {"kind": "ServiceAccount"},
}
CLUSTER_WIDE = {"clusterrole", "clusterrolebinding", "priorityclass"}


def at(document: Any, path: str) -> Any:
    for step in path.split("."):
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document


async def test_every_generator_makes_what_it_says(run: Kubectl) -> None:
    for number, (command, expected) in enumerate(GENERATORS.items()):
        kind, *rest = command.split()
        # What is of the whole cluster needs a name of this test alone.
        name = run.namespace if kind in CLUSTER_WIDE else f"x{number}"
        arguments = [name if one == "x" else one for one in rest]
        made = orjson.loads(await run("create", kind, *arguments, "-o", "json"))
        assert {path: at(made, path) for path in expected} == expected, command
        if kind in CLUSTER_WIDE:
            await run("delete", kind, run.namespace)


async def test_a_token_is_issued_for_an_account(run: Kubectl) -> None:
    await run("create", "serviceaccount", "robot")
    token = await run("create", "token", "robot", "--duration=10m")
    assert token.count(".") == 2
    nobody = await run.attempt("create", "token", "nobody")
    assert 'serviceaccounts "nobody" not found' in nobody.err


@pytest.mark.parametrize("name", ["Upper", "under_score", "x" * 254])
async def test_a_name_that_is_none_is_refused(run: Kubectl, name: str) -> None:
    refused = await run.attempt("create", "configmap", name)
    assert refused.code == 1
    assert "metadata.name: Invalid value" in refused.err
