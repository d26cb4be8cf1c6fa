"""Evaluate `format`: the names that the server knows, and the texts that each of them allows.

An unknown format is no fault: it is dropped, with a warning when the CRD is written. The dialects are the real
server's, leniencies included (`22 days` is a duration, an IPv4 address may have leading zeros).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from datetime import date
from email.utils import parseaddr
from functools import cache, lru_cache, partial
from typing import Final
from urllib.parse import urlsplit

import re2  # type: ignore[import-untyped]

__all__ = ["Format", "format_of", "is_known", "is_uri"]

Format = Callable[[str], bool]

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_NUMERIC: Final = {"integer": frozenset({"int32", "int64"}), "number": frozenset({"float", "double"})}


def is_known(kind: str, name: str) -> bool:
    """Whether the server judges this format on values of this type."""
    if kind in ("", "string"):
        return _normal(name) in _FORMATS
    return name in _NUMERIC.get(kind, ())


def format_of(name: str) -> Format | None:
    """How a text is judged; None for a format that says nothing about texts."""
    return _FORMATS.get(_normal(name))


def _normal(name: str) -> str:
    return name.replace("-", "")


def _matching(pattern: str) -> Format:
    # All of them compiled are 20 MB, and most are never asked.
    compiled = cache(partial(re2.compile, pattern, _OPTIONS))
    return lambda text: compiled().search(text) is not None


_DAY = _matching(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
_TIME = re2.compile(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$", _OPTIONS)
_GO_DURATION = re2.compile(r"^[+-]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$", _OPTIONS)
_LOOSE_DURATION = re.compile(r"\d+\s*([A-Za-zµ]+)")
_UNITS: Final = (
    ("ns", "nano"),
    ("us", "µs", "micro"),
    ("ms", "milli"),
    ("s", "sec"),
    ("m", "min"),
    ("h", "hr", "hour"),
    ("d", "day"),
    ("w", "wk", "week"),
)


def _is_date(text: str) -> bool:
    if not _DAY(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=512)
def _is_moment(text: str) -> bool:
    day, *rest = text.lower().split("t")
    match = _TIME.search(rest[0]) if rest and _is_date(day) else None
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _is_duration(text: str) -> bool:
    if _GO_DURATION.search(text) is not None:
        return True
    return any(_is_unit(match[1].lower()) for match in _LOOSE_DURATION.finditer(text))


def _is_unit(unit: str) -> bool:
    return any(unit in spellings or unit.startswith(spellings[-1]) for spellings in _UNITS)


def _without_leading_zeros(text: str) -> str:
    return re.sub(r"(^|\.)0+(?=\d)", r"\1", text) if "." in text else text


def _is_ipv4(text: str) -> bool:
    try:
        ipaddress.ip_address(_without_leading_zeros(text))
    except ValueError:
        return False
    return "." in text and "%" not in text


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return ":" in text and "%" not in text


def _is_cidr(text: str) -> bool:
    if not re.search(r"/\d+$", text):
        return False
    try:
        ipaddress.ip_network(_without_leading_zeros(text), strict=False)
    except ValueError:
        return False
    return True


def is_uri(text: str) -> bool:
    """Whether a text is what may stand in a request line: an absolute URI or an absolute path."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    if re.search(r"[\x00-\x1f\x7f]|%(?![0-9A-Fa-f]{2})", text) or " " in parts.netloc:
        return False
    return text.startswith("/") or (bool(parts.scheme) and len(text) > len(parts.scheme) + 1)


def _is_email(text: str) -> bool:
    _, address = parseaddr(text)
    return re.fullmatch(r'[^@\s"<>()\[\],;:]+@[^@\s<>()\[\],;:]+', address) is not None


_HOSTNAME = _matching(
    r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|"
    r"([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$"
)


def _is_hostname(text: str) -> bool:
    encoded = text.encode()
    return len(encoded) <= 255 and all(len(label) <= 63 for label in encoded.split(b".")) and _HOSTNAME(text)


def _digits(text: str) -> str:
    return re.sub(r"[\s-]+", "", text)


def _is_isbn10(text: str) -> bool:
    digits = _digits(text)
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        return False
    values = [10 if char == "X" else int(char) for char in digits]
    return sum((index + 1) * value for index, value in enumerate(values)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = _digits(text)
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    return sum(int(char) * (3 if index % 2 else 1) for index, char in enumerate(digits)) % 10 == 0


_CARD = _matching(
    r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|(222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"
    r"|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11}"
    r"|6[27][0-9]{14})$"
)


def _is_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    if not _CARD(digits):
        return False
    doubled = (int(char) * (1 + index % 2) for index, char in enumerate(reversed(digits)))
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LONG_NAME = _matching(rf"^{_LABEL}(\.{_LABEL})*$")
_SHORT_NAME = _matching(f"^{_LABEL}$")
_CHANNEL = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"
_HEX = "[0-9a-f]"

_FORMATS: Final[dict[str, Format]] = {
    "bsonobjectid": _matching(r"^[0-9a-fA-F]{24}$"),
    "byte": _matching(r"^(?:[A-Za-z0-9+\/]{4})*(?:[A-Za-z0-9+\/]{2}==|[A-Za-z0-9+\/]{3}=|[A-Za-z0-9+\/]{4})$"),
    "cidr": _is_cidr,
    "creditcard": _is_card,
    "date": _is_date,
    "datetime": _is_moment,
    "duration": _is_duration,
    "email": _is_email,
    "hexcolor": _matching(r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8slongname": lambda text: len(text.encode()) <= 253 and _LONG_NAME(text),
    "k8sshortname": lambda text: len(text.encode()) <= 63 and _SHORT_NAME(text),
    "mac": _matching(
        r"(?i)^([0-9a-f]{2}(:[0-9a-f]{2}){5}|[0-9a-f]{2}(:[0-9a-f]{2}){7}|[0-9a-f]{2}(:[0-9a-f]{2}){19}"
        r"|[0-9a-f]{2}(-[0-9a-f]{2}){5}|[0-9a-f]{2}(-[0-9a-f]{2}){7}|[0-9a-f]{2}(-[0-9a-f]{2}){19}"
        r"|[0-9a-f]{4}(\.[0-9a-f]{4}){2}|[0-9a-f]{4}(\.[0-9a-f]{4}){3}|[0-9a-f]{4}(\.[0-9a-f]{4}){9})$"
    ),
    "password": lambda text: True,
    "rgbcolor": _matching(rf"^rgb\({_CHANNEL},{_CHANNEL},{_CHANNEL}\)$"),
    "ssn": _matching(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$"),
    "uri": is_uri,
    "uuid": _matching(rf"(?i)^{_HEX}{{8}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{12}}$"),
    "uuid3": _matching(rf"(?i)^{_HEX}{{8}}-?{_HEX}{{4}}-?3{_HEX}{{3}}-?{_HEX}{{4}}-?{_HEX}{{12}}$"),
    "uuid4": _matching(rf"(?i)^{_HEX}{{8}}-?{_HEX}{{4}}-?4{_HEX}{{3}}-?[89ab]{_HEX}{{3}}-?{_HEX}{{12}}$"),
    "uuid5": _matching(rf"(?i)^{_HEX}{{8}}-?{_HEX}{{4}}-?5{_HEX}{{3}}-?[89ab]{_HEX}{{3}}-?{_HEX}{{12}}$"),
}
