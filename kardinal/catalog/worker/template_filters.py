"""The filters that kapitan adds to Jinja2, without those whose result is another each time.

`strftime` needs seconds and uses UTC, `shuffle` needs a seed, and Jinja2's own `random` is refused.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import random
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from kardinal.catalog.errors import CatalogError
from kardinal.catalog.worker.emit import yaml_text
from kardinal.catalog.worker.files import Files

__all__ = ["FORBIDDEN", "filters"]

_TRUE = ("yes", "on", "1", "true", 1)


def filters(files: Files) -> dict[str, Callable[..., Any]]:
    """Return the filters by name; `fileglob` finds files of the compilation."""
    return {
        "b64decode": lambda text: base64.b64decode(text).decode(),
        "b64encode": lambda text: base64.b64encode(text.encode()).decode(),
        "bool": _bool,
        "fileglob": lambda pattern: [path for path in files.glob(pattern) if files.is_file(path)],
        "merge_strategic": _merge_strategic,
        "random": _refused("random", "the output would be another each time", "Choose an item by its position"),
        "regex_escape": re.escape,
        "regex_findall": _regex_findall,
        "regex_replace": _regex_replace,
        "regex_search": _regex_search,
        "reveal_maybe": lambda reference: reference,
        "sha256": lambda text: hashlib.sha256(text.encode()).hexdigest(),
        "shuffle": _shuffle,
        "strftime": _strftime,
        "ternary": _ternary,
        "to_datetime": _to_datetime,
        "toml": _refused("toml", "TOML is not supported", "Write JSON or YAML"),
        "yaml": yaml_text,
    }


def _refused(name: str, problem: str, remedy: str) -> Callable[..., Any]:
    def refuse(*_: object, **__: object) -> Any:
        raise CatalogError("refused", f"the filter {name} is not allowed: {problem}", remedy=remedy)

    return refuse


def _bool(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    return (value.lower() if isinstance(value, str) else value) in _TRUE


def _merge_strategic(value: Any) -> Any:
    """Merge the objects of one `name` in each list whose items all have one; later fields win."""
    if isinstance(value, dict):
        return {key: _merge_strategic(item) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    items = [_merge_strategic(item) for item in value]
    if not all(isinstance(item, dict) and "name" in item for item in items):
        return items
    named: dict[Any, dict[Any, Any]] = {}
    for item in items:
        named.setdefault(item["name"], {}).update(item)
    return list(named.values())


def _flags(ignorecase: bool, multiline: bool) -> re.RegexFlag:
    return (re.IGNORECASE if ignorecase else re.NOFLAG) | (re.MULTILINE if multiline else re.NOFLAG)


def _regex_findall(value: str, regex: str, multiline: bool = False, ignorecase: bool = False) -> list[Any]:
    return re.findall(regex, value, _flags(ignorecase, multiline))


def _regex_replace(value: str = "", pattern: str = "", replacement: str = "", ignorecase: bool = False) -> str:
    return re.sub(pattern, replacement, value, flags=_flags(ignorecase, False))


def _regex_search(value: str, regex: str, *groups: str, **flags: bool) -> Any:
    """Return the first match; with groups such as `\\\\1` and `\\\\g<name>`, the list of these."""
    names: list[str | int] = []
    for group in groups:
        if not (name := re.match(r"\\g<(\S+)>|\\(\d+)", group)):
            raise CatalogError(
                "render", f"{group!r} is not a group of a regular expression", remedy=r"Write '\\1' or '\\g<name>'"
            )
        names.append(name[1] if name[2] is None else int(name[2]))
    found = re.search(regex, value, _flags(bool(flags.get("ignorecase")), bool(flags.get("multiline"))))
    if not found:
        return None
    return [found.group(name) for name in names] if names else found.group()


def _shuffle(items: Any, seed: Any = None) -> Any:
    if not seed:
        return _refused("shuffle", "the output would be another each time", "Give it a seed, such as shuffle(1)")()
    shuffled = list(items)
    random.Random(seed).shuffle(shuffled)  # noqa: S311 - an order for a file, not a secret
    return shuffled


def _strftime(pattern: str, second: Any = None) -> str:
    if second is None:
        return str(_refused("strftime", "the output would be another each time", "Give it the seconds since 1970")())
    return time.strftime(pattern, time.gmtime(int(second)))


def _ternary(value: Any, true_val: Any, false_val: Any, none_val: Any = None) -> Any:
    if value is None and none_val is not None:
        return none_val
    return true_val if value else false_val


def _to_datetime(text: str, format: str = "%Y-%m-%d %H:%M:%S", tz: Any = None) -> datetime.datetime:  # noqa: A002 - kapitan's name
    return datetime.datetime.strptime(text, format).replace(tzinfo=tz)


FORBIDDEN: Mapping[type, frozenset[str]] = {
    datetime.date: frozenset(("astimezone", "fromtimestamp", "now", "timestamp", "today", "utcnow"))
}
"""Methods by type that would bring the time or the time zone of this machine into an output."""
