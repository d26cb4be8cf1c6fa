"""Bodies of the three built-in kinds that are fuzzed.

A Deployment is always paused, so that its controller on a real server leaves it alone; a Service is headless and
selects something, so that no address is allocated. Both are otherwise as people write them. What they cannot be
without is always there: the validation of built-in kinds has cases of its own.
"""

from __future__ import annotations

from random import Random
from typing import Any

from tests.local.contract.fuzz.steps import JsonObject

__all__ = ["BUILTINS", "body_of", "root_of", "status_of"]

BUILTINS = {"ConfigMap": ("v1", "configmaps"), "Service": ("v1", "services"), "Deployment": ("apps/v1", "deployments")}
_WRONG: tuple[Any, ...] = (None, "wrong", 7, True, {}, [])


def root_of(api_version: str) -> str:
    """Where the resources of a version are."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def body_of(kind: str, rng: Random, *, mischief: float) -> JsonObject:
    """The content of an object."""
    make = {"ConfigMap": _config_map, "Service": _service, "Deployment": _deployment}[kind]
    body = make(rng)
    if mischief and rng.random() < mischief:
        target = rng.choice([body, body.get("spec", body)])
        # A Deployment that is not paused is written to by others.
        target[rng.choice([*(key for key in target if key != "paused"), "unknown"])] = rng.choice(_WRONG)
    return body


def status_of(kind: str, rng: Random) -> JsonObject:
    if kind == "Service":
        moment = "2026-01-01T00:00:00Z"
        conditions = [
            {"type": kind, "status": rng.choice(["True", "False"]), "reason": "R", "message": rng.choice("mn")}
            | {"lastTransitionTime": moment}
            for kind in rng.sample(["A", "B", "C"], rng.randint(1, 2))
        ]
        return {"conditions": conditions}
    return {"replicas": rng.randint(0, 2), "observedGeneration": rng.randint(0, 2)}


def _some(rng: Random, values: JsonObject, chance: float = 0.5) -> JsonObject:
    return {name: value for name, value in values.items() if rng.random() < chance}


def _config_map(rng: Random) -> JsonObject:
    body: JsonObject = {"data": _some(rng, {name: rng.choice(["1", "2", ""]) for name in ("a", "b", "c")})}
    if rng.random() < 0.3:
        body["binaryData"] = _some(rng, {"x": rng.choice(["AAE=", "AQ=="]), "y": "AA=="})
    if rng.random() < 0.03:
        body["immutable"] = True
    return body


def _service(rng: Random) -> JsonObject:
    numbers = rng.sample([80, 81, 82], rng.randint(1, 3))
    ports = [
        {"name": f"p{number}", "port": number}
        | _some(rng, {"protocol": "TCP", "targetPort": rng.choice([8080, "web", number])})
        for number in numbers
    ]
    selector = {"app": rng.choice("ab")} | _some(rng, {"tier": "x"})
    spec: JsonObject = {"clusterIP": "None", "ports": ports, "selector": selector} | _some(
        rng,
        {
            "publishNotReadyAddresses": rng.random() < 0.5,
            "sessionAffinity": rng.choice(["None", "ClientIP"]),
            "externalIPs": rng.sample(["10.2.0.1", "10.2.0.2"], rng.randint(1, 2)),
        },
        0.4,
    )
    return {"spec": spec}


def _deployment(rng: Random) -> JsonObject:
    pod: JsonObject = {
        "containers": [_container(rng, name) for name in rng.sample(["one", "two", "three"], rng.randint(1, 2))]
    } | _some(
        rng,
        {
            "nodeSelector": _some(rng, {"disk": rng.choice("ab")}),
            "tolerations": [{"key": rng.choice("ab"), "operator": "Exists"}],
            "volumes": [{"name": name, "emptyDir": {}} for name in rng.sample("vw", rng.randint(1, 2))],
            "terminationGracePeriodSeconds": rng.choice([5, 30]),
            "imagePullSecrets": [{"name": rng.choice("st")}],
            "hostAliases": [{"ip": "10.0.0.1", "hostnames": [rng.choice("hi")]}],
        },
        0.3,
    )
    if rng.random() < 0.2:
        pod["securityContext"] = _some(rng, {"runAsUser": rng.choice([1, 2]), "runAsNonRoot": True})
    template: JsonObject = {
        "metadata": {"labels": {"app": "a"} | _some(rng, {"x": rng.choice("ab")}, 0.3)},
        "spec": pod,
    }
    spec: JsonObject = {
        "paused": True,
        "selector": {"matchLabels": {"app": "a"}},
        "template": template,
    } | _some(
        rng,
        {
            "replicas": rng.randint(0, 2),
            "minReadySeconds": rng.choice([0, 1]),
            "strategy": rng.choice(
                [
                    {"rollingUpdate": {"maxSurge": rng.choice([1, "50%"])}},
                    {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": rng.choice([1, "25%"])}},
                ]
            ),
        },
        0.4,
    )
    return {"spec": spec}


def _container(rng: Random, name: str) -> JsonObject:
    return {"name": name, "image": f"{name}:{rng.randint(1, 2)}"} | _some(
        rng,
        {
            "env": [{"name": key, "value": rng.choice("12")} for key in rng.sample("AB", rng.randint(1, 2))],
            "ports": [
                {"containerPort": port} | _some(rng, {"protocol": rng.choice(["TCP", "UDP"]), "name": f"p{port}"}, 0.3)
                for port in rng.sample([80, 81], rng.randint(1, 2))
            ],
            "args": rng.sample(["-a", "-b"], rng.randint(1, 2)),
            "resources": {"requests": {"cpu": rng.choice([1, "1", "1000m", "0.5"])}},
            "imagePullPolicy": rng.choice(["Always", "IfNotPresent"]),
            "readinessProbe": {"httpGet": {"path": "/", "port": rng.choice([80, "web"])}},
        },
        0.25,
    )
