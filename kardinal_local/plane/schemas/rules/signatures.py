"""The functions that a rule may call, with the types of their arguments and results.

The table is the real server's environment: the language itself, its strings, sets, lists, optionals and two-variable
comprehensions, and what Kubernetes adds (urls, regular expressions, quantities, addresses, formats, versions). A line
is one overload; the receiver of a member stands before its name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from kardinal_local.plane.schemas.rules.celtypes import Type

__all__ = ["SIGNATURES", "Signature"]

_ORDERED: Final = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
_NUMBERS: Final = ("int", "uint", "double")
_QUANTITY: Final = "kubernetes.Quantity"
_SEMVER: Final = "kubernetes.Semver"
_URL: Final = "kubernetes.URL"

_LANGUAGE: Final = """
_?_:_(bool, A, A) A
!_(bool) bool
_==_(A, A) bool
_!=_(A, A) bool
_+_(bytes, bytes) bytes
_+_(double, double) double
_+_(duration, duration) duration
_+_(duration, timestamp) timestamp
_+_(timestamp, duration) timestamp
_+_(int, int) int
_+_(list(A), list(A)) list(A)
_+_(string, string) string
_+_(uint, uint) uint
_/_(double, double) double
_/_(int, int) int
_/_(uint, uint) uint
_%_(int, int) int
_%_(uint, uint) uint
_*_(double, double) double
_*_(int, int) int
_*_(uint, uint) uint
-_(double) double
-_(int) int
_-_(double, double) double
_-_(duration, duration) duration
_-_(int, int) int
_-_(timestamp, duration) timestamp
_-_(timestamp, timestamp) duration
_-_(uint, uint) uint
_[_](list(A), int) A
_[_](map(A,B), A) B
_[_](optional_type(list(A)), int) optional_type(A)
_[_](optional_type(map(A,B)), A) optional_type(B)
_[?_](list(A), int) optional_type(A)
_[?_](optional_type(list(A)), int) optional_type(A)
_[?_](map(A,B), A) optional_type(B)
_[?_](optional_type(map(A,B)), A) optional_type(B)
@in(A, list(A)) bool
@in(A, map(A,B)) bool
size(bytes) int
bytes size() int
size(list(A)) int
list(A) size() int
size(map(A,B)) int
map(A,B) size() int
size(string) int
string size() int
type(A) type(A)
bool(bool) bool
bool(string) bool
bytes(bytes) bytes
bytes(string) bytes
double(double) double
double(int) double
double(string) double
double(uint) double
duration(duration) duration
duration(int) duration
duration(string) duration
dyn(A) dyn
int(int) int
int(double) int
int(duration) int
int(string) int
int(timestamp) int
int(uint) int
string(string) string
string(bool) string
string(bytes) string
string(double) string
string(duration) string
string(int) string
string(timestamp) string
string(uint) string
timestamp(timestamp) timestamp
timestamp(int) timestamp
timestamp(string) timestamp
uint(uint) uint
uint(double) uint
uint(int) uint
uint(string) uint
string contains(string) bool
string endsWith(string) bool
string startsWith(string) bool
matches(string, string) bool
string matches(string) bool
duration getHours() int
duration getMinutes() int
duration getSeconds() int
duration getMilliseconds() int
"""

_EXTENSIONS: Final = """
optional.of(A) optional_type(A)
optional.ofNonZeroValue(A) optional_type(A)
optional.none() optional_type(A)
optional.unwrap(list(optional_type(A))) list(A)
list(optional_type(A)) unwrapOpt() list(A)
optional_type(A) value() A
optional_type(A) hasValue() bool
optional_type(A) or(optional_type(A)) optional_type(A)
optional_type(A) orValue(A) A
list(A) first() optional_type(A)
list(A) last() optional_type(A)
string charAt(int) string
string indexOf(string) int
string indexOf(string, int) int
string lastIndexOf(string) int
string lastIndexOf(string, int) int
string lowerAscii() string
string upperAscii() string
string replace(string, string) string
string replace(string, string, int) string
string split(string) list(string)
string split(string, int) list(string)
string substring(int) string
string substring(int, int) string
string trim() string
string format(list(dyn)) string
strings.quote(string) string
list(string) join() string
list(string) join(string) string
sets.contains(list(A), list(A)) bool
sets.equivalent(list(A), list(A)) bool
sets.intersects(list(A), list(A)) bool
list(A) slice(int, int) list(A)
list(list(A)) flatten() list(A)
list(dyn) flatten(int) list(dyn)
lists.range(int) list(int)
list(A) distinct() list(A)
list(A) reverse() list(A)
list(A) indexOf(A) int
list(A) lastIndexOf(A) int
string find(string) string
string findAll(string) list(string)
string findAll(string, int) list(string)
"""

_KUBERNETES: Final = f"""
isURL(string) bool
url(string) {_URL}
{_URL} getScheme() string
{_URL} getHost() string
{_URL} getHostname() string
{_URL} getPort() string
{_URL} getEscapedPath() string
{_URL} getQuery() map(string,list(string))
isQuantity(string) bool
quantity(string) {_QUANTITY}
{_QUANTITY} sign() int
{_QUANTITY} isInteger() bool
{_QUANTITY} asInteger() int
{_QUANTITY} asApproximateFloat() double
{_QUANTITY} add({_QUANTITY}) {_QUANTITY}
{_QUANTITY} add(int) {_QUANTITY}
{_QUANTITY} sub({_QUANTITY}) {_QUANTITY}
{_QUANTITY} sub(int) {_QUANTITY}
{_QUANTITY} isLessThan({_QUANTITY}) bool
{_QUANTITY} isGreaterThan({_QUANTITY}) bool
{_QUANTITY} compareTo({_QUANTITY}) int
isIP(string) bool
ip(string) net.IP
ip.isCanonical(string) bool
string(net.IP) string
net.IP family() int
net.IP isUnspecified() bool
net.IP isLoopback() bool
net.IP isLinkLocalMulticast() bool
net.IP isLinkLocalUnicast() bool
net.IP isGlobalUnicast() bool
isCIDR(string) bool
cidr(string) net.CIDR
string(net.CIDR) string
net.CIDR containsIP(string) bool
net.CIDR containsIP(net.IP) bool
net.CIDR containsCIDR(string) bool
net.CIDR containsCIDR(net.CIDR) bool
net.CIDR ip() net.IP
net.CIDR masked() net.CIDR
net.CIDR prefixLength() int
format.named(string) optional_type(kubernetes.NamedFormat)
kubernetes.NamedFormat validate(string) optional_type(list(string))
isSemver(string) bool
isSemver(string, bool) bool
semver(string) {_SEMVER}
semver(string, bool) {_SEMVER}
{_SEMVER} major() int
{_SEMVER} minor() int
{_SEMVER} patch() int
{_SEMVER} compareTo({_SEMVER}) int
{_SEMVER} isGreaterThan({_SEMVER}) bool
{_SEMVER} isLessThan({_SEMVER}) bool
"""

FORMAT_NAMES: Final = (
    *("dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "dns1123LabelPrefix"),
    *("dns1123SubdomainPrefix", "dns1035LabelPrefix", "labelValue", "uri", "uuid", "byte", "date", "datetime"),
)
_CLOCK: Final = (
    *("getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours", "getMilliseconds"),
    *("getMinutes", "getMonth", "getSeconds"),
)


@dataclass(frozen=True, slots=True)
class Signature:
    """One overload; the receiver of a member is its first parameter."""

    member: bool
    parameters: tuple[Type, ...]
    result: Type


_LINE: Final = re.compile(r"(?:(\S*[^\s,]) )?([^\s(]+)\((.*)\) (\S+)")
_TOKEN: Final = re.compile(r"[\w.!]+|[(),]")


def _types(text: str) -> list[Type]:
    """The types of a list such as `list(A), int`."""
    return _read(_TOKEN.findall(text), 0)[0]


def _read(tokens: list[str], position: int) -> tuple[list[Type], int]:
    types: list[Type] = []
    while position < len(tokens) and tokens[position] != ")":
        name, position = tokens[position], position + 1
        if name == ",":
            continue
        parameters: list[Type] = []
        if tokens[position : position + 1] == ["("]:
            parameters, position = _read(tokens, position + 1)
            position += 1
        types.append(Type(name, tuple(parameters)))
    return types, position


def _generated() -> list[str]:
    lines = [f"format.{name}() kubernetes.NamedFormat" for name in FORMAT_NAMES]
    for name in _CLOCK:
        lines += [f"timestamp {name}() int", f"timestamp {name}(string) int"]
    for operator in ("<", "<=", ">", ">="):
        pairs = [(kind, kind) for kind in _ORDERED]
        pairs += [(left, right) for left in _NUMBERS for right in _NUMBERS if left != right]
        lines += [f"_{operator}_({left}, {right}) bool" for left, right in pairs]
    for kind in _ORDERED:
        lines += [f"list({kind}) {name}() {kind}" for name in ("min", "max")]
        lines += [f"list({kind}) isSorted() bool", f"list({kind}) sort() list({kind})"]
    lines += [f"list({kind}) sum() {kind}" for kind in (*_NUMBERS, "duration")]
    return lines


def _table() -> dict[str, list[Signature]]:
    table: dict[str, list[Signature]] = {}
    for line in [*(_LANGUAGE + _EXTENSIONS + _KUBERNETES).split("\n"), *_generated()]:
        if match := _LINE.fullmatch(line):
            receiver, name, arguments, result = match.groups("")
            parameters = _types(receiver) + _types(arguments)
            table.setdefault(name, []).append(Signature(bool(receiver), tuple(parameters), _types(result)[0]))
    return table


SIGNATURES: Final = _table()
