"""Export the objects of a running API server as one YAML stream for `kubectl apply -f`.

The export is the desired state, and not the observed state. UIDs, resource versions, field managers and statuses
belong to the server and its controllers, and cannot be applied. Owner references have the UID of their owner, so on
another server the garbage collector would delete their objects. Objects that a controller owns are omitted, because
their controller creates them again; other owner references are dropped. `exclusions` has the other omitted objects.

The order matters if controllers run on the server that the export is applied to. A Bundle is promoted as soon as it is
created, so gates come before Pipelines, Pipelines before Bundles, and older Bundles before newer ones.

Bundles record their promotions, with the evidence, in their status, which no program can create again. So the record is
exported for readers, as comments, also for Bundles that are omitted.

The trap is a short Git hash such as `1e10`: it is a string in Python's YAML, and a number in Go's. So every string that
could be read as another type is quoted.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import yaml

from kardinal.cli.output import say
from kardinal.cli.session import explained
from kardinal.kube import Client, KubeError, Served, discover, load_connection
from kardinal.objects import JsonObject
from kardinal.promotion.kinds import BUNDLE
from kardinal.runtime.process import run
from kardinal_local.exclusions import exclusion

__all__ = ["print_everything"]

PAGE = 500
_PASSING = frozenset({"Event", "Lease"})
_FIRST = ("CustomResourceDefinition", "Namespace", "ServiceAccount", "Secret", "ConfigMap", "ClusterRole", "Role")
_LAST = ("PolicyGate", "Pipeline", "Bundle")
_KEPT_METADATA = ("name", "namespace", "labels", "annotations", "finalizers")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_RECORD = ("phase", "pipeline", "environments")
"""The fields of a Bundle's status that record its promotions."""
_OWN_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./ -]+")


def print_everything(kubeconfig: Path) -> None:
    """Print the YAML stream, and on standard error the numbers of exported and omitted objects."""
    try:
        run(_print(kubeconfig))
    except KubeError as error:
        raise explained(error) from error


async def _print(kubeconfig: Path) -> None:
    left_out: Counter[str] = Counter()
    printed = 0
    async with Client(await load_connection(kubeconfig), user_agent="kardinal-export") as client:
        for served in sorted(await discover(client), key=_rank):
            if served.resource.kind in _PASSING or not {"list", "create"} <= served.verbs:
                continue
            async for document in _stored(client, served):
                if _is_bundle(served):
                    say(_record(document, served), nl=False)
                if reason := exclusion(document):
                    left_out[reason] += 1
                    continue
                say("---\n" + _yaml(_wanted(document, served)), nl=False)
                printed += 1
    told = "".join(f"; left out {number} {reason}" for reason, number in sorted(left_out.items()))
    say(f"exported {printed} objects{told}", err=True)


async def _stored(client: Client, served: Served) -> AsyncIterator[JsonObject]:
    """Yield the objects of a kind sorted by name, but Bundles from the oldest to the newest."""
    if _is_bundle(served):
        for bundle in sorted([each async for each in _pages(client, served)], key=_age):
            yield bundle
        return
    async for document in _pages(client, served):
        yield document


async def _pages(client: Client, served: Served) -> AsyncIterator[JsonObject]:
    token = None
    while True:
        page = await client.list(served.resource, limit=PAGE, continue_token=token)
        for document in page.items:
            yield document
        if (token := page.continue_token) is None:
            return


def _age(bundle: JsonObject) -> tuple[str, float]:
    """Return the sort key of a Bundle: its creation time, which has whole seconds, then `status.sequence`."""
    return bundle["metadata"]["creationTimestamp"], (bundle.get("status") or {}).get("sequence") or math.inf


def _rank(served: Served) -> tuple[int, bool, str, str]:
    """Return the sort key of a kind: kinds that other kinds need, such as Namespaces, come first, Bundles last."""
    kind = served.resource.kind
    if kind in _FIRST:
        place = _FIRST.index(kind)
    else:
        place = len(_FIRST) + 1 + _LAST.index(kind) if kind in _LAST else len(_FIRST)
    return place, served.resource.namespaced, served.resource.group, kind


def _wanted(document: JsonObject, served: Served) -> JsonObject:
    """Return the object without the fields that its server sets, such as UID and status."""
    metadata = {field: document["metadata"][field] for field in _KEPT_METADATA if field in document["metadata"]}
    if "annotations" in metadata:
        annotations = metadata["annotations"]
        metadata["annotations"] = {key: value for key, value in annotations.items() if key != _LAST_APPLIED}
    if "finalizers" in metadata:
        metadata["finalizers"] = [one for one in metadata["finalizers"] if one != _OWN_FINALIZER]
    head = {"apiVersion": document["apiVersion"], "kind": document["kind"]}
    filled = {field: value for field, value in metadata.items() if value}
    hidden = {"apiVersion", "kind", "metadata"} | ({"status"} if served.status else set())
    return {**head, "metadata": filled, **{key: value for key, value in document.items() if key not in hidden}}


def _is_bundle(served: Served) -> bool:
    return (served.resource.group, served.resource.kind) == (BUNDLE.group, BUNDLE.kind)


def _record(bundle: JsonObject, served: Served) -> str:
    """Return the record of a Bundle's promotions as YAML comments; empty if no promotion has begun."""
    status = bundle.get("status") or {}
    if not status.get("environments"):
        return ""
    record = _wanted(bundle, served) | {"status": {field: status[field] for field in _RECORD if field in status}}
    # Strings of others may hold any kind of line break, so each line gets its own comment mark.
    return "".join(f"# {line}\n" for line in ("The record of a Bundle:", *_yaml(record).splitlines()))


class _Dumper(yaml.CSafeDumper):
    """Quotes every string that could be read as another type."""


def _text(dumper: yaml.CSafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None if _PLAIN.fullmatch(value) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def _yaml(document: Any) -> str:
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)
    return text
