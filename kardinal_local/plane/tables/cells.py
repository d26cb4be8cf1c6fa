"""Compute the cells of built-in kinds: functions from an object and the time to a value.

The words are those of the real server's printers, which people and scripts read: `<none>`, `<unset>`, `25%`, a list
that ends with how many more there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.tables.columns import Cell, age

__all__ = [
    "about",
    "balancer",
    "claim",
    "completions",
    "containers",
    "controller",
    "count",
    "duration",
    "endpoints",
    "external_address",
    "first_seen",
    "hosts",
    "job_status",
    "labels",
    "last_scheduled",
    "last_seen",
    "limited",
    "metrics",
    "modes",
    "number",
    "param",
    "part",
    "path",
    "phase",
    "ports",
    "quotas",
    "ready",
    "reference",
    "selector",
    "slice_addresses",
    "slice_ports",
    "source",
    "subjects",
    "times",
    "yes_or_no",
]

_SHOWN = 3
_ADDRESS_WIDTH = 16
_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_JOB_STATES = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _find(obj: JsonObject, keys: Iterable[str]) -> Any:
    value: Any = obj
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def path(*keys: str, default: Any = "<none>") -> Cell:
    """The value at the end of some keys, or a stand-in."""

    def cell(obj: JsonObject, _: datetime) -> Any:
        value = _find(obj, keys)
        return default if value is None or value == "" else value

    return cell


def number(*keys: str) -> Cell:
    """Return a number, zero when it is not set."""

    def cell(obj: JsonObject, _: datetime) -> int:
        value = _find(obj, keys)
        return value if isinstance(value, int) else 0

    return cell


def count(*fields: tuple[str, ...]) -> Cell:
    """How many entries the maps or lists at some places have together."""
    return lambda obj, _: sum(len(_find(obj, keys) or ()) for keys in fields)


def yes_or_no(*keys: str) -> Cell:
    return lambda obj, _: str(bool(_find(obj, keys)))


def labels(*keys: str) -> Cell:
    """Labels as they stand on a command line."""

    def cell(obj: JsonObject, _: datetime) -> str:
        found = _find(obj, keys) or {}
        return ",".join(f"{key}={value}" for key, value in sorted(found.items())) or "<none>"

    return cell


def selector(*keys: str) -> Cell:
    """A label selector as it stands on a command line."""

    def cell(obj: JsonObject, _: datetime) -> str:
        found = _find(obj, keys)
        terms = [f"{key}={value}" for key, value in ((found or {}).get("matchLabels") or {}).items()]
        terms += [_term(one) for one in (found or {}).get("matchExpressions") or ()]
        return ",".join(sorted(terms)) or "<none>"

    return cell


def _term(requirement: JsonObject) -> str:
    key, values = requirement["key"], ",".join(sorted(requirement.get("values") or ()))
    match requirement["operator"]:
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "DoesNotExist":
            return f"!{key}"
    return str(key)


def limited(items: list[str], *, shown: int = _SHOWN, otherwise: str = "<unset>") -> str:
    """The first few items, and how many more there are."""
    if not items:
        return otherwise
    more = f" + {len(items) - shown} more..." if len(items) > shown else ""
    return ",".join(items[:shown]) + more


def containers(field: str, *template: str) -> Cell:
    """A field of all containers of a pod template."""

    def cell(obj: JsonObject, _: datetime) -> str:
        return ",".join(str(one.get(field, "")) for one in _find(obj, (*template, "containers")) or ())

    return cell


def ready(obj: JsonObject, _: datetime) -> str:
    return f"{_find(obj, ('status', 'readyReplicas')) or 0}/{_find(obj, ('spec', 'replicas')) or 0}"


def phase(obj: JsonObject, _: datetime) -> str:
    """The phase of a volume or claim."""
    gone = obj["metadata"].get("deletionTimestamp")
    return "Terminating" if gone else str(_find(obj, ("status", "phase")) or "")


def modes(*keys: str) -> Cell:
    """Access modes, short and each once."""
    return lambda obj, _: ",".join(dict.fromkeys(_MODES.get(one, "") for one in _find(obj, keys) or ()))


def reference(*keys: str) -> Cell:
    """`Kind/name`."""

    def cell(obj: JsonObject, _: datetime) -> str:
        found = _find(obj, keys)
        if not found:
            return "<none>"
        kind = ".".join(filter(None, (found.get("kind"), found.get("apiGroup") if "scope" in found else None)))
        return f"{kind}/{found.get('name', '')}"

    return cell


def controller(obj: JsonObject, _: datetime) -> str:
    owner = next((one for one in obj["metadata"].get("ownerReferences", ()) if one.get("controller")), None)
    if owner is None:
        return "<none>"
    group = owner["apiVersion"].rpartition("/")[0]
    return f"{owner['kind'].lower()}{'.' if group else ''}{group}/{owner['name']}"


def subjects(kind: str) -> Cell:
    def cell(obj: JsonObject, _: datetime) -> str:
        found = [one for one in obj.get("subjects") or () if one.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{one.get('namespace', '')}/{one['name']}" for one in found)
        return ", ".join(one["name"] for one in found)

    return cell


def last_seen(obj: JsonObject, now: datetime) -> str:
    """When an event was seen last: a series and the old and new APIs each keep that elsewhere."""
    moment = (
        (obj.get("series") or {}).get("lastObservedTime")
        or obj.get("lastTimestamp")
        or obj.get("deprecatedLastTimestamp")
        or obj.get("eventTime")
    )
    return age(moment, now)


def first_seen(obj: JsonObject, now: datetime) -> str:
    return age(obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime"), now)


def about(obj: JsonObject, _: datetime) -> str:
    target = obj.get("involvedObject") or obj.get("regarding") or {}
    kind, name = str(target.get("kind", "")).lower(), target.get("name", "")
    return f"{kind}/{name}" if name else kind


def part(obj: JsonObject, _: datetime) -> str:
    return str((obj.get("involvedObject") or obj.get("regarding") or {}).get("fieldPath", ""))


def source(obj: JsonObject, _: datetime) -> str:
    found = obj.get("source") or obj.get("deprecatedSource") or {}
    component = obj.get("reportingComponent") or obj.get("reportingController") or found.get("component", "")
    host = obj.get("reportingInstance") or found.get("host", "")
    return f"{component}, {host}" if host else str(component)


def times(obj: JsonObject, _: datetime) -> int:
    found = (obj.get("series") or {}).get("count") or obj.get("count") or obj.get("deprecatedCount")
    return found if isinstance(found, int) else 1


def ports(obj: JsonObject, _: datetime) -> str:
    """The ports of a service, each with that of the nodes."""

    def shown(port: JsonObject) -> str:
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        return f"{port['port']}{node}/{port['protocol']}"

    return ",".join(shown(port) for port in _find(obj, ("spec", "ports")) or ()) or "<none>"


def balancer(obj: JsonObject, _: datetime) -> str:
    """The addresses of a load balancer."""
    entries = _find(obj, ("status", "loadBalancer", "ingress")) or ()
    found = ",".join(sorted({one.get("ip") or one.get("hostname") or "" for one in entries} - {""}))
    return f"{found[: _ADDRESS_WIDTH - 3]}..." if len(found) > _ADDRESS_WIDTH else found


def external_address(obj: JsonObject, now: datetime) -> str:
    spec = obj["spec"]
    if spec["type"] == "ExternalName":
        return str(spec.get("externalName", ""))
    addresses = list(spec.get("externalIPs", ()))
    if spec["type"] == "LoadBalancer":
        addresses[:0] = filter(None, [balancer(obj, now)])
        return ",".join(addresses) or "<pending>"
    return ",".join(addresses) or "<none>"


def endpoints(obj: JsonObject, _: datetime) -> str:
    found = []
    for subset in obj.get("subsets") or ():
        addresses = [one["ip"] for one in subset.get("addresses") or ()]
        for port in subset.get("ports") or (None,):
            found += [_joined(address, port) for address in addresses]
    return limited(found, otherwise="<none>" if not obj.get("subsets") else "")


def _joined(address: str, port: JsonObject | None) -> str:
    if port is None:
        return address
    return f"[{address}]:{port['port']}" if ":" in address else f"{address}:{port['port']}"


def slice_ports(obj: JsonObject, _: datetime) -> str:
    return limited([str(port.get("port", port.get("name", "*"))) for port in obj.get("ports") or ()])


def slice_addresses(obj: JsonObject, _: datetime) -> str:
    return limited([address for one in obj.get("endpoints") or () for address in one.get("addresses") or ()])


def hosts(obj: JsonObject, _: datetime) -> str:
    rules = _find(obj, ("spec", "rules")) or []
    named = [rule["host"] for rule in rules if rule.get("host")][:_SHOWN]
    if not named:
        return "*"
    more = f" + {len(rules) - _SHOWN} more..." if len(named) == _SHOWN and len(rules) > _SHOWN else ""
    return ",".join(named) + more


def completions(obj: JsonObject, _: datetime) -> str:
    spec, succeeded = obj["spec"], _find(obj, ("status", "succeeded")) or 0
    if "completions" in spec:
        return f"{succeeded}/{spec['completions']}"
    parallel = spec.get("parallelism", 0)
    return f"{succeeded}/1 of {parallel}" if parallel > 1 else f"{succeeded}/1"


def duration(obj: JsonObject, now: datetime) -> str:
    """How long a job took, or takes."""
    status = obj.get("status") or {}
    started, ended = status.get("startTime"), status.get("completionTime")
    if not started:
        return ""
    return age(started, datetime.fromisoformat(ended) if ended else now)


def job_status(obj: JsonObject, _: datetime) -> str:
    conditions = _find(obj, ("status", "conditions")) or ()
    true = {one["type"] for one in conditions if one.get("status") == "True"}
    if obj["metadata"].get("deletionTimestamp"):
        true.add("")
    return next((shown for condition, shown in _JOB_STATES if condition in true), "Running")


def metrics(obj: JsonObject, _: datetime) -> str:
    """The targets of an autoscaler; resources in per cent, everything else as it was given."""
    current = _find(obj, ("status", "currentMetrics")) or []
    found = []
    for index, spec in enumerate(_find(obj, ("spec", "metrics")) or ()):
        field = next((key for key in spec if key != "type"), "")
        now = _find(current[index], (field, "current")) if index < len(current) else None
        found.append(_metric(field, spec.get(field) or {}, now or {}))
    return limited(found, shown=2, otherwise="<none>")


def _metric(field: str, spec: JsonObject, now: JsonObject) -> str:
    target = spec.get("target") or {}
    named = f"{spec.get('name') or spec.get('container')}: " if field in ("resource", "containerResource") else ""
    if target.get("averageUtilization") is not None:
        seen = now.get("averageUtilization")
        return f"{named}{'<unknown>' if seen is None else f'{seen}%'}/{target['averageUtilization']}%"
    key = "averageValue" if "averageValue" in target else "value"
    average = " (avg)" if key == "averageValue" and field in ("object", "external") else ""
    return f"{named}{now.get(key, '<unknown>')}/{target.get(key, '<auto>')}{average}"


def last_scheduled(obj: JsonObject, now: datetime) -> str:
    moment = _find(obj, ("status", "lastScheduleTime"))
    return age(moment, now) if moment else "<none>"


def claim(obj: JsonObject, _: datetime) -> str:
    """The claim that a volume is bound to."""
    found = _find(obj, ("spec", "claimRef"))
    return f"{found.get('namespace', '')}/{found.get('name', '')}" if found else ""


def quotas(*, limits: bool) -> Cell:
    """What is used of what there is; limits and requests have a column each."""

    def cell(obj: JsonObject, _: datetime) -> str:
        hard, used = (_find(obj, ("status", key)) or {} for key in ("hard", "used"))
        names = [name for name in sorted(hard) if name.startswith("limits.") == limits]
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return cell


def param(obj: JsonObject, _: datetime) -> str:
    """What parametrises an admission policy."""
    kind, chosen = _find(obj, ("spec", "paramKind")), _find(obj, ("spec", "paramRef"))
    if kind:
        return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"
    if chosen and chosen.get("name"):
        return f"{chosen.get('namespace') or '*'}/{chosen['name']}"
    return "<unset>"
