"""Expressions over one spec: those that compile, by what they are about, and those that do not."""

from __future__ import annotations

from tests.local.contract.definitions import BOOLEAN, INT_OR_STRING, INTEGER, NUMBER, TEXT, fields, items
from tests.local.contract.examples import JsonObject

__all__ = ["BROKEN", "SAMPLE", "SPEC", "WORKING"]

_SHORT = {**TEXT, "maxLength": 20}
_ANY = {"x-kubernetes-preserve-unknown-fields": True}

SPEC: JsonObject = fields(
    i=INTEGER,
    n=NUMBER,
    s=_SHORT,
    b=BOOLEAN,
    o=fields(x=_SHORT),
    l=items(_SHORT, maxItems=3),
    li=items(INTEGER, maxItems=3),
    lo=items(
        {**fields(k=_SHORT), "required": ["k"]},
        maxItems=3,
        **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
    ),
    m={"type": "object", "maxProperties": 3, "additionalProperties": _SHORT},
    ios={**INT_OR_STRING, "maxLength": 5},
    t={**TEXT, "format": "date-time"},
    d={**TEXT, "format": "duration"},
    free={"type": "object", **_ANY},
    frees={"type": "object", "additionalProperties": _ANY},
    whole={"type": "object", "x-kubernetes-embedded-resource": True, **_ANY},
    **{"any": _ANY, "a-b": _SHORT, "namespace": _SHORT, "dotted.name": _SHORT, "under__score": _SHORT},
)

SAMPLE: JsonObject = {
    "i": 3,
    "n": 2,
    "s": "a,b",
    "b": True,
    "o": {},
    "l": ["a", "b"],
    "li": [1, 3],
    "lo": [{"k": "a"}, {"k": "b"}],
    "m": {"a": "x", "b": "y"},
    "ios": "5%",
    "t": "2026-01-02T03:04:05Z",
    "d": "1h30m",
    "whole": {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "inner"}},
    "a-b": "dashed",
    "namespace": "here",
    "dotted.name": "dots",
    "under__score": "under",
}

WORKING: dict[str, list[str]] = {
    "operators": [
        *("self.i == 1", "self.i < 1.5", "self.n > self.i", "self.s + self.s == 'a,ba,b'", "-self.i == -3"),
        *("self.b ? self.i == 1 : false", "!self.b", "self.i in [1, 3]", "self.s in self.m", "'a' in self.l"),
        *("self.i % 2 == 0", "self.n * 2.0 == 4.0", "self.i / 0 == 1", "self.i % 0 == 1", "self == self"),
        *("self.i + 9223372036854775807 > 0", "self.o == self.o", "self.l == ['a', 'b']", "self.m == {}"),
    ],
    "fields": [
        *("has(self.o.x)", "self.o.x == 'a'", "self.l[0] == 'b'", "self.l[5] == 'a'", "self.m['z'] == 'x'"),
        *("has(self.m.a)", "self.m.a == 'x'", "self.a__dash__b == 'dashed'", "self.__namespace__ == 'there'"),
        *("self.namespace == 'here'", "self.dotted__dot__name == 'dots'", "self.under__underscores__score == 'no'"),
        *("self.whole.kind == 'Thing'", "self.whole.metadata.name == 'outer'", "self.free == self.free"),
    ],
    "macros": [
        *("self.l.all(x, x.size() < 3)", "self.l.exists(x, x == 'c')", "self.l.exists_one(x, x == 'a')"),
        *("self.l.filter(x, x == 'a').size() == 2", "self.l.map(x, x + 'a') == self.l"),
        *("self.l.map(x, x != 'a', x + 'c') == ['bc']", "self.m.all(k, self.m[k] == 'x')"),
        *("self.lo.all(x, x.k == 'a')", "self.lo.exists(x, self.lo.exists(y, x.k == y.k))"),
        *("self.m.all(k, v, k != v)", "self.l.all(i, v, i < 1)", "self.m.exists(k, v, v == 'y')"),
        *("self.l.transformList(i, v, v + 'a') == self.l", "self.m.transformMap(k, v, v + 'a') == self.m"),
        *("self.l.transformMapEntry(i, v, {v: i}).size() > 2", "self.l.existsOne(i, v, v == 'a')"),
        *("self.lo.sortBy(x, x.k).size() == 3", "self.li.all(x, x > 1 && x < 4 || x == 7)"),
    ],
    "texts": [
        *("self.s.matches('^b')", "self.s.startsWith('b')", "self.s.endsWith('b')", "self.s.contains('z')"),
        *("self.s.split(',').size() > 2", "self.l.join(',') == 'a'", "self.s.upperAscii() == 'A'"),
        *("self.s.trim() == ''", "self.s.replace('a', 'b') == ''", "self.s.substring(0, 1) == 'b'"),
        *("self.s.charAt(0) == 'b'", "self.s.indexOf('b') == 1", "self.s.lastIndexOf('b') == 1"),
        *("self.s.find('[a-z]') == 'b'", "self.s.findAll('[a-z]') == ['a']", "self.s.findAll('[a-z]', 1).size() == 2"),
        *("'%s is %d'.format([self.s, self.i]) == ''", "strings.quote(self.s) == ''", "self.s.lowerAscii() == 'A'"),
    ],
    "lists": [
        *("self.l.indexOf('b') == 2", "self.l.isSorted() && self.li.sum() == 5", "self.li.min() == 2"),
        *("self.li.max() > 3", "self.li.sort() == [1]", "self.l.distinct() == []", "self.l.slice(0, 1) == ['b']"),
        *("[[1], [2]].flatten() == [1]", "lists.range(3) == [0]", "sets.contains(self.l, ['c'])"),
        *("sets.equivalent(self.l, ['a'])", "sets.intersects(self.li, [2])", "self.l.reverse() == self.l"),
    ],
    "optionals": [
        *("self.?o.?x.hasValue()", "self.?s.orValue('z') == 'z'", "self.?o.?x.orValue('none') == 'some'"),
        *("self.l[?5].orValue('none') == 'some'", "self.m[?'a'].orValue('') == ''", "optional.none().hasValue()"),
        *("self.?s.optMap(x, x.size()).orValue(0) > 3", "!self.?s.optFlatMap(x, optional.of(x)).hasValue()"),
        *("optional.ofNonZeroValue('').or(optional.of('a')).value() == 'b'", "self.?o.?x.value() == 'a'"),
    ],
    "moments": [
        *("self.t < timestamp('2020-01-01T00:00:00Z')", "self.d == duration('1h')", "self.t + self.d < self.t"),
        *("self.t.getFullYear() == 2020", "self.t.getMonth() == 1", "self.d.getMinutes() == 30", "int(self.t) < 1"),
        *("self.t.getHours('Europe/Zurich') == 3", "string(self.d) == '1h'", "type(self.t) == string"),
    ],
    "conversions": [
        *("int(self.s) == 1", "double('1.5') == 1.0", "string(self.i) == '4'", "bool(self.s)", "dyn(self.i) == 'a'"),
        *("type(self.ios) == int", "self.ios == 5", "int(self.ios.replace('%', '')) > 5", "self.ios.foo == 1"),
    ],
    "kubernetes": [
        *("isURL(self.s)", "url('https://a:8/p?q=1').getHost() == 'a'", "url('https://a:8/p?q=1').getPort() == '9'"),
        *("url('https://a/p?q=1&q=2').getQuery()['q'] == ['1']", "url('https://a/b c').getEscapedPath() == '/'"),
        *("quantity('1.5Gi').isGreaterThan(quantity('2G'))", "isQuantity(self.s)", "quantity('1k') == quantity('1')"),
        *("quantity('100m').add(1).compareTo(quantity('1')) == 0", "quantity('50').asInteger() == 51"),
        *("ip('1.2.3.4').family() == 6", "isIP('01.2.3.4')", "ip.isCanonical('::0001')", "isCIDR('1.2.3.4')"),
        *("cidr('10.0.0.0/8').containsIP('11.0.0.1')", "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/7')"),
        *("string(ip('1.2.3.4')) == ''", "cidr('10.1.0.0/8').masked().prefixLength() == 9"),
        *("!format.dns1123Label().validate('A_').hasValue()", "format.named('nothing').hasValue()"),
        *("format.dns1123Label().validate(self.s).value() == []", "semver('1.2.3').major() == 2"),
        *("isSemver('v1.0')", "!isSemver('v1.0', true)", "semver('1.0.0-rc.1').isGreaterThan(semver('1.0.0'))"),
    ],
}

BROKEN: list[str] = [
    *("self.i == 'a'", "self.i == 1.0", "self.n == 1", "self.s + 1", "self.foo", "self.o.y", "has(self.o.y)"),
    *("has(self)", "has(self.m['a'])", "self.l.exists(x, x)", "self.l.filter(x, 1).size() == 1"),
    *("self.l.map(x, 1, x) == self.l", "self.i.all(x, true)", "self.m['a'] == 1", "self.l['a'] == 'a'", "self.l.a"),
    *("self.i.foo", "self.i.foo()", "foo(self.i)", "foo", "size(self.i)", "self.l.size() > '1'", "!self.i", "-self.s"),
    *("self.b ? 1 : 2", "self.b ? true : 'a'", "self.i ? true : false", "self.b && self.i", "self.b || self.s"),
    *("self.i in ['a']", "1 in self.l", "[1, 'a'] == self.l", "[1, 2.0].size() > 0", "{'a': 1, 'b': 'c'}.size() > 0"),
    *(
        "{1: 'a', 'b': 'c'}.size() > 0",
        "timestamp('foo') == self.t",
        "duration('x') == self.d",
        "self.t + self.t == self.t",
    ),
    *(
        "self.d.getFullYear()",
        "self.s.matches('(')",
        "self.s.startsWith(1)",
        "self.li.join(',')",
        "self.l.indexOf(1) == 1",
    ),
    *(
        "self.l.sum()",
        "quantity(self.i)",
        "sets.equivalent(self.l, [1])",
        "self.?s.orValue(1) == 'a'",
        "self.?foo.hasValue()",
    ),
    *("self.m[?1].hasValue()", "self.?s", "self.l.existsOne(x, x == 'a')", "self.a-b", "self.any", "self.free.foo"),
    *(
        "has(self.free.foo)",
        "self.frees",
        "self.whole.spec",
        "self.kind",
        "self.metadata.name == 'a'",
    ),
    *("bool(self.i)", "self.s == null", "null == self.i", "self.lo.all(x, x.z == 'a')", "'a'", "1", "[]", "{}"),
    *(
        "[self.s, self.i].size() == 2",
        "self.i ==",
        "self.i == 1)",
        "self.",
        "a.b.c()",
        "self.l.all(x)",
        "self.l.all(x, y)",
    ),
    *("self.l.all(self.x, true)", "self.i == 1 && self.foo == 2 && self.s == 3", "self.i == 9223372036854775808"),
    *("cel.bind(x, 1, x == 1)", "self.s.reverse() == ''", "now() > self.t", "self.s == 'é' ? true : self.zz"),
]
