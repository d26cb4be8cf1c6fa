"""The tokens of one namespace, from Secret `kardinal-webhook` (pure).

    - name: release
      hash: <SHA-256 of the token in hexadecimal digits>
      hmacKey: <the key of the signatures>
      pipelines: [web, "shop-*"]
      maySkip: [staging]

Keys of the Secret: `tokens.yaml`, a list of tokens with a scope each; `token` and `hmacKey`, one token without a name
for every Pipeline and type; `allowUnstamped: "true"`, for clients that do not sign a time yet. A `tokens.yaml` with a
fault yields no token at all, because its author did not intend a partial list. Faults name positions and never values.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Annotated, Any

import yaml
from pydantic import ConfigDict, Field, ValidationError

from kardinal.models.base import DnsLabel, Model, Time
from kardinal.objects import JsonObject
from kardinal.objects.secrets import SecretValueError, secret_value
from kardinal.promotion.api.bundle import BundleType

__all__ = ["NO_CREDENTIALS", "Token", "WebhookCredentials", "read_credentials"]

FILE = "tokens.yaml"
FILE_LIMIT = 64 * 1024
"""The maximum size of tokens.yaml in bytes."""
TOKENS = 64
DEPTH = 8
"""The maximum depth of nesting in tokens.yaml; a list of tokens needs three levels."""
FAULTS_SHOWN = 5

Glob = Annotated[str, Field(min_length=1, max_length=253)]
Globs = Annotated[tuple[Glob, ...], Field(max_length=64)]


class _Entry(Model):
    """An entry of tokens.yaml."""

    model_config = ConfigDict(extra="forbid")

    name: DnsLabel
    hash: Annotated[str, Field(pattern=r"^(sha256:)?[0-9a-fA-F]{64}$")]
    hmac_key: Annotated[str, Field(min_length=1, max_length=1024)]
    pipelines: Globs = ("*",)
    types: Annotated[tuple[BundleType, ...], Field(max_length=8)] = ("image", "config", "mixed")
    may_skip: Globs = ()
    may_pin: bool = False
    approvals: Globs = ()
    expires: Time | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """One token and its scope; its name is empty if it comes from the keys `token` and `hmacKey`."""

    name: str
    digest: bytes = field(repr=False)
    hmac_key: bytes = field(repr=False)
    pipelines: tuple[str, ...] = ("*",)
    types: tuple[BundleType, ...] = ("image", "config", "mixed")
    may_skip: tuple[str, ...] = ()
    may_pin: bool = False
    approvals: tuple[str, ...] = ()
    """The external approvals that it may answer."""
    expires: datetime | None = None

    @property
    def title(self) -> str:
        """The name of the token for a message."""
        return f"token {self.name}" if self.name else "the token"

    def may_post_to(self, pipeline: str) -> bool:
        return any(fnmatchcase(pipeline, glob) for glob in self.pipelines)

    def may_answer(self, approval: str) -> bool:
        return any(fnmatchcase(approval, glob) for glob in self.approvals)

    def skippable(self, environments: tuple[str, ...]) -> tuple[str, ...]:
        """Return the `environments` that a Bundle posted with this token may skip."""
        return tuple(sorted({name for name in environments for glob in self.may_skip if fnmatchcase(name, glob)}))


@dataclass(frozen=True, slots=True)
class WebhookCredentials:
    """The tokens in a Secret; `faults` describe its unusable parts."""

    tokens: tuple[Token, ...] = ()
    allow_unstamped: bool = False
    faults: tuple[str, ...] = ()

    def holder(self, presented: bytes, now: datetime) -> Token | None:
        """Return the presented token, if it has not expired. The time this takes reveals nothing about the tokens."""
        digest = hashlib.sha256(presented).digest()
        found = None
        for token in self.tokens:
            if hmac.compare_digest(token.digest, digest):
                found = token
        return found if found is not None and (found.expires is None or now < found.expires) else None


NO_CREDENTIALS = WebhookCredentials()
"""The credentials of a namespace without the Secret."""


def read_credentials(secret: JsonObject) -> WebhookCredentials:
    """Return the tokens in a Secret `kardinal-webhook`."""
    token = _value(secret, "token")
    hmac_key = _value(secret, "hmacKey")
    tokens: list[Token] = []
    if token and hmac_key:
        tokens.append(Token("", hashlib.sha256(token).digest(), hmac_key))
    listed, faults = _listed(_value(secret, FILE))
    return WebhookCredentials((*tokens, *listed), _value(secret, "allowUnstamped") == b"true", faults)


def _value(secret: JsonObject, key: str) -> bytes:
    """Return a value of the Secret; if it cannot be decoded, an empty value, which authenticates no request."""
    try:
        return secret_value(secret, key).strip()
    except SecretValueError:
        return b""


def _listed(text: bytes) -> tuple[tuple[Token, ...], tuple[str, ...]]:
    """Return the tokens of tokens.yaml, or its faults."""
    if not text:
        return (), ()
    try:
        document = _load(text)
    except _Fault as fault:
        return (), (str(fault),)
    if not isinstance(document, list) or len(document) > TOKENS:
        return (), (f"{FILE}: must be a list of at most {TOKENS} tokens",)
    entries: list[_Entry] = []
    faults: list[str] = []
    for index, item in enumerate(document):
        try:
            entries.append(_Entry.model_validate(item))
        except ValidationError as error:
            faults += _faults(error, f"{FILE}[{index}]")
    faults += _doubles(entries)
    return (() if faults else tuple(map(_token, entries))), tuple(faults[:FAULTS_SHOWN])


def _token(entry: _Entry) -> Token:
    return Token(
        name=entry.name,
        digest=bytes.fromhex(entry.hash.removeprefix("sha256:")),
        hmac_key=entry.hmac_key.encode(),
        pipelines=entry.pipelines,
        types=entry.types,
        may_skip=entry.may_skip,
        may_pin=entry.may_pin,
        approvals=entry.approvals,
        expires=entry.expires,
    )


class _Fault(Exception):
    """tokens.yaml is not valid YAML within the limits."""


def _load(text: bytes) -> Any:
    """Return the document. Scalars stay text, because a hash of digits is not a number, and no constructor runs."""
    if len(text) > FILE_LIMIT:
        raise _Fault(f"{FILE}: is larger than {FILE_LIMIT} bytes")
    try:
        depth = 0
        for event in yaml.parse(text, Loader=yaml.CBaseLoader):
            if isinstance(event, yaml.AliasEvent):
                raise _Fault(f"{FILE}: aliases are not read{_line(event.start_mark)}")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEPTH:
                raise _Fault(f"{FILE}: is nested too deeply{_line(event.start_mark)}")
        return yaml.load(text, Loader=yaml.CBaseLoader)  # noqa: S506 - builds lists, maps and text alone
    except yaml.MarkedYAMLError as error:
        raise _Fault(f"{FILE}: is not YAML{_line(error.problem_mark)}") from None
    except (yaml.YAMLError, ValueError):
        raise _Fault(f"{FILE}: is not YAML") from None


def _line(mark: Any) -> str:
    return f"; line {mark.line + 1}" if mark is not None else ""


def _faults(error: ValidationError, where: str) -> Iterator[str]:
    """Yield the faults of one entry; an unknown field is not named, because it may be a misplaced value."""
    for item in error.errors(include_url=False, include_context=False, include_input=False):
        if item["type"] == "extra_forbidden":
            known = ", ".join(field.alias or name for name, field in _Entry.model_fields.items())
            yield f"{where}: has an unknown field; known: {known}"
        else:
            path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in item["loc"])
            yield f"{where}{path}: {item['msg']}"


def _doubles(entries: list[_Entry]) -> Iterator[str]:
    tokens = [_token(entry) for entry in entries]
    if len({token.name for token in tokens}) < len(tokens):
        yield f"{FILE}: two tokens have the same name"
    if len({token.digest for token in tokens}) < len(tokens):
        yield f"{FILE}: two tokens have the same hash"
