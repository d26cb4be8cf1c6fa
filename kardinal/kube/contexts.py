"""The contexts of kubeconfig files: as in kubectl, several files form one configuration.

If several entries have the same name, or several files a current context, the first one counts. A relative path is
relative to the directory of the file that contains its entry. Errors name fields and entries and never quote a value,
which may be a credential.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kardinal.bounded.loader import BoundedLoader

__all__ = ["ConfigEntry", "KubeContext", "NoContext", "Unusable", "choose_context"]

_MALFORMED = "it is not a well-formed kubeconfig"


class Unusable(Exception):
    """An entry cannot be used; the message continues the sentence "<file> cannot be used: "."""


class NoContext(Exception):
    """No context is chosen, or the chosen one does not exist; the message continues after the name of the file."""


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """The settings of one cluster, user or context."""

    title: str
    directory: Path
    """The directory to which its paths are relative."""
    settings: Mapping[str, Any] = field(repr=False)

    def text(self, key: str) -> str | None:
        """Return a string, or None if it is absent or empty."""
        value = self.settings.get(key)
        if value is None or isinstance(value, str):
            return value or None
        raise Unusable(f"{key} of {self.title} is not a string: {_MALFORMED}")

    def flag(self, key: str) -> bool:
        """Return a boolean; False if it is absent."""
        value = self.settings.get(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise Unusable(f"{key} of {self.title} is neither true nor false: {_MALFORMED}")

    def path(self, key: str) -> Path | None:
        """Return the existing file that `key` names, or None without `key`.

        Raises `Unusable` if the file does not exist.
        """
        named = self.text(key)
        if named is None:
            return None
        path = self.directory / named
        if not path.is_file():
            raise Unusable(f"File does not exist: {path}")
        return path

    def file(self, key: str, scratch: Path) -> Path | None:
        """Return a file in `scratch` with the content of `<key>-data`, or else the file that `key` names."""
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
class KubeContext:
    """The cluster, the user and the namespace of one context."""

    cluster: ConfigEntry
    user: ConfigEntry
    namespace: str


def choose_context(files: Sequence[Path], name: str | None) -> KubeContext:
    """Read and merge `files`, and return the context called `name`, or else the current context."""
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
    return KubeContext(
        cluster=cluster,
        user=user or ConfigEntry("no user", chosen.directory, {}),
        namespace=chosen.text("namespace") or "default",
    )


def _read(path: Path) -> ConfigEntry:
    """Return the top level of a file."""
    try:
        document = yaml.load(path.read_bytes(), Loader=BoundedLoader)  # noqa: S506 - a loader of plain values
    except OSError as error:
        raise Unusable(f"{path} cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, ValueError):
        # The message of the parser is left out, because it quotes the line with the credentials.
        raise Unusable(f"{path} is not YAML: {_MALFORMED}") from None
    if not isinstance(document, dict):
        raise Unusable(f"{path} is empty or not a mapping: {_MALFORMED}")
    return ConfigEntry(str(path), path.parent.absolute(), document)


def _entries(documents: Sequence[ConfigEntry], section: str) -> dict[str, ConfigEntry]:
    """Return the entries of a section by name; the first one of each name."""
    kind = section.removesuffix("s")
    found: dict[str, ConfigEntry] = {}
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
            found.setdefault(name, ConfigEntry(f"{kind} {name!r}", document.directory, settings))
    return found


def _referred(context: ConfigEntry, kind: str, entries: Mapping[str, ConfigEntry]) -> ConfigEntry | None:
    name = context.text(kind)
    if name is not None and name not in entries:
        raise Unusable(f"an entry is incomplete: there is no {kind} {name!r}")
    return None if name is None else entries[name]
