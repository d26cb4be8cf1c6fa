"""Fill the placeholders of a query with the values of one Bundle in one environment (pure).

    up{app="{{ .AppName }}", version=~"{{ .Version }}.*"}

Names of Pipelines and versions come from people who may not write the check. A value therefore stands only inside of a
string of PromQL, and is escaped as its quotes demand; in a string that is a regular expression (`=~`, `!~`) it stands
for itself. So no value changes which series the query reads beyond the ones that it names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kardinal.objects.errors import KardinalError
from kardinal.objects.text import cut
from kardinal.promotion.api import Bundle
from kardinal.promotion.api.image import bundle_version

__all__ = ["PLACEHOLDERS", "MetricSubject", "QueryError", "query_fault", "rendered", "subject_of"]

PLACEHOLDERS = ("AppName", "Environment", "Version", "Namespace")

_STRING = re.compile(r"""([=!]~\s*+)?("(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'|`[^`]*+`)|\#[^\n]*+""", re.DOTALL)
"""A string of PromQL, with the operator before it that makes it a regular expression; or a comment."""
_PLACEHOLDER = re.compile(r"\{\{\s*+\.?([^{}]*+)(?:\}\})?")
_OPENING = "{{"
_REGEX = re.compile(r"[\\.+*?()|\[\]{}^$]")
_ESCAPES = {"\\": r"\\", "\n": r"\n", "\r": r"\r"}


class QueryError(KardinalError):
    """A query that cannot be asked."""


@dataclass(frozen=True, slots=True)
class MetricSubject:
    """One Bundle in one environment. `app` is the name of its Pipeline."""

    namespace: str
    bundle: str
    environment: str
    app: str
    version: str
    uid: str = ""
    """UID of the Bundle: one that was deleted and created again is another one."""

    def value(self, placeholder: str) -> str:
        """Return the value of one of `PLACEHOLDERS`."""
        values = (self.app, self.environment, self.version, self.namespace)
        return dict(zip(PLACEHOLDERS, values, strict=True))[placeholder]


def subject_of(bundle: Bundle, *, environment: str, pipeline: str) -> MetricSubject:
    """Return a Bundle in an environment."""
    metadata = bundle.metadata
    return MetricSubject(
        namespace=metadata.namespace,
        bundle=metadata.name,
        environment=environment,
        app=pipeline,
        version=bundle_version(bundle.spec.artifacts),
        uid=metadata.uid,
    )


_ANY = MetricSubject("namespace", "bundle", "environment", "app", "1")


def query_fault(query: str) -> str | None:
    """Return why no Bundle can fill the placeholders of a query; None if they can be filled."""
    try:
        rendered(query, _ANY)
    except QueryError as error:
        return str(error)
    return None


def rendered(query: str, subject: MetricSubject) -> str:
    """Return the query with the values of `subject`. Raises `QueryError`."""
    return "".join(_parts(query, subject))


def _parts(query: str, subject: MetricSubject) -> Iterator[str]:
    end = 0
    for found in _STRING.finditer(query):
        yield _outside(query[end : found.start()])
        end = found.end()
        operator, string = found.groups()
        if string is None:
            # A comment, in which a placeholder has no effect.
            continue
        yield (operator or "") + _filled(string, subject, regex=operator is not None)
    yield _outside(query[end:])


def _outside(text: str) -> str:
    if _OPENING in text:
        raise QueryError(
            "a placeholder stands outside of a string",
            remedy='Write it in quotes, as in app="{{ .AppName }}"',
        )
    return text


def _filled(string: str, subject: MetricSubject, *, regex: bool) -> str:
    quote = string[0]

    def value(found: re.Match[str]) -> str:
        name = found[1].strip()
        if found[0].replace(" ", "") != f"{{{{.{name}}}}}" or name not in PLACEHOLDERS:
            known = ", ".join(f"{{{{ .{each} }}}}" for each in PLACEHOLDERS)
            raise QueryError(f"there is no placeholder {cut(found[0], 64)}", remedy=f"There are {known}")
        text = subject.value(name)
        return _escaped(_REGEX.sub(r"\\\g<0>", text) if regex else text, quote)

    return _PLACEHOLDER.sub(value, string)


def _escaped(text: str, quote: str) -> str:
    if quote == "`":
        if quote in text:
            raise QueryError("a value has a backquote, which a string in backquotes cannot hold")
        return text
    return "".join(f"\\{letter}" if letter == quote else _ESCAPES.get(letter, letter) for letter in text)
