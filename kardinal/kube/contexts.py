"""The contexts of kubeconfig files: several files are one configuration, as they are for kubectl.

Of entries with one name, and of several current contexts, the first counts. A relative path starts from the directory
of the file that its entry stands in. Errors name fields and entries and never quote a value, which may be a credential.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

__all__ = ["Context", "Entry", "NoContext", "Unusable", "choose_context"]

_MALFORMED = "it is not a well-formed kubeconfig"


class Unusable(Exception):
    """An entry cannot be used; the message fits behind "<file> cannot be used: "."""


class NoContext(Exception):
    """No context is chosen, or the chosen one is not there; the message fits behind the name of the file."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The settings of one cluster, user or context."""

    title: str
    directory: Path
    """The directory that its relative paths start from."""
    settings: Mapping[str, Any] = field(repr=False)

    def text(self, key: str) -> str | None:
        """Return a string, or None when it is absent or empty."""
        value = self.settings.get(key)
        if value is None or isinstance(value, str):
            return value or None
        raise Unusable(f"{key} of {self.title} is not a string: {_MALFORMED}")

    def flag(self, key: str) -> bool:
        """Return a boolean, False when it is absent."""
        value = self.settings.get(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise Unusable(f"{key} of {self.title} is neither true nor false: {_MALFORMED}")

    def path(self, key: str) -> Path | None:
        """Return the file that `key` names, which exists; None when it names none."""
        named = self.text(key)
        if named is None:
            return None
        path = self.directory / named
        if not path.is_file():
            raise Unusable(f"File does not exist: {path}")
        return path

    def file(self, key: str, scratch: Path) -> Path | None:
        """Return a file with what `<key>-data` embeds, written into `scratch`, else the file that `key` names."""
        embedded = self.text(f"{key}-data")
        if embedded is None:
            return self.path(key)
        path = scratch / key
        try:
            path.write_bytes(base64.b64decode("".join(embedded.split()), validate=True))
        except (binascii.Error, ValueError):
            raise Unusable(f"{key}-data of {self.title} is not base64: {_MALFORMED}") from None
        return path


@dataclass(frozen=True, slots=True)
class Context:
    """The cluster, the user and the namespace of one context."""

    cluster: Entry
    user: Entry
    namespace: str


def choose_context(files: Sequence[Path], name: str | None) -> Context:
    """Read and merge `files`, and return the context called `name`, or else the current one."""
    documents = [_read(path) for path in files]
    contexts = _entries(documents, "contexts")
    wanted = name or next(filter(None, (document.text("current-context") for document in documents)), None)
    known = ", ".join(contexts) or "none"
    if wanted is None:
        raise NoContext(f"sets no current-context: choose one of {known} with --context")
    if wanted not in contexts:
        raise NoContext(f"has no context {wanted!r}: choose one of {known}")
    chosen = contexts[wanted]
    cluster = _referred(chosen, "cluster", _entries(documents, "clusters"))
    user = _referred(chosen, "user", _entries(documents, "users"))
    if cluster is None:
        raise Unusable(f"an entry is incomplete: {chosen.title} names no cluster")
    return Context(
        cluster=cluster,
        user=user or Entry("no user", chosen.directory, {}),
        namespace=chosen.text("namespace") or "default",
    )


def _read(path: Path) -> Entry:
    """Return the top level of a file."""
    try:
        document = yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)
    except OSError as error:
        raise Unusable(f"{path} cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, ValueError):
        # Says no more: the message of the parser quotes the line, with the credentials in it.
        raise Unusable(f"{path} is not YAML: {_MALFORMED}") from None
    if not isinstance(document, dict):
        raise Unusable(f"{path} is empty or not a mapping: {_MALFORMED}")
    return Entry(str(path), path.parent.absolute(), document)


def _entries(documents: Sequence[Entry], section: str) -> dict[str, Entry]:
    """Return the entries of a section by name, the first of each name."""
    kind = section.removesuffix("s")
    found: dict[str, Entry] = {}
    for document in documents:
        items = document.settings.get(section) or []
        if not isinstance(items, list):
            raise Unusable(f"{section} of {document.title} is not a list: {_MALFORMED}")
        for index, item in enumerate(items):
            name = item.get("name") if isinstance(item, dict) else None
            if not isinstance(name, str):
                raise Unusable(f"{section}[{index}] of {document.title} has no name: {_MALFORMED}")
            settings = item.get(kind) or {}
            if not isinstance(settings, dict):
                raise Unusable(f"{kind} {name!r} of {document.title} is not a mapping: {_MALFORMED}")
            found.setdefault(name, Entry(f"{kind} {name!r}", document.directory, settings))
    return found


def _referred(context: Entry, kind: str, entries: Mapping[str, Entry]) -> Entry | None:
    name = context.text(kind)
    if name is not None and name not in entries:
        raise Unusable(f"an entry is incomplete: there is no {kind} {name!r}")
    return None if name is None else entries[name]
