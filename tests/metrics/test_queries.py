"""The placeholders of queries: where they stand, and that no value is more than itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kardinal.promotion.metrics.queries import MetricSubject, QueryError, query_fault, rendered

SHOP = MetricSubject("team", "app-1", "prod", "shop", "1.2.3")


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ('up{app="{{ .AppName }}"}', 'up{app="shop"}'),
        ("up{env='{{.Environment}}',ns='{{  .Namespace  }}'}", "up{env='prod',ns='team'}"),
        ("up{version=`{{ .Version }}`}", "up{version=`1.2.3`}"),
        ('up{a=~"{{ .AppName }}-.*", v!~ "{{ .Version }}|x"}', r'up{a=~"shop-.*", v!~ "1\\.2\\.3|x"}'),
        ("up # of {{ .AppName }}\n > 0", "up \n > 0"),
        ('{"up", app="{{ .AppName }}"}', '{"up", app="shop"}'),
        ('{__name__="up"} or {job="#{{ .AppName }}"}', '{__name__="up"} or {job="#shop"}'),
        ("sum(rate(up[5m]))", "sum(rate(up[5m]))"),
    ],
)
def test_placeholder_stands_in_any_string(query: str, asked: str) -> None:
    assert query_fault(query) is None
    assert rendered(query, SHOP) == asked


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("up > {{ .Version }}", "outside of a string"),
        ('up{app="{{ .App }}"}', "there is no placeholder"),
        ('up{app="{{ AppName }}"}', "there is no placeholder"),
        ('up{app="{{ .AppName"}', "there is no placeholder"),
        ('up{app="{{ .AppName | quote }}"}', "there is no placeholder"),
        ('up{app="{{ .AppName }', "outside of a string"),
    ],
)
def test_other_placeholder_is_refused(query: str, says: str) -> None:
    assert says in (query_fault(query) or "")


@pytest.mark.parametrize(
    ("query", "version", "asked"),
    [
        ('up{v="{{ .Version }}"}', '1"} or up{v="', r'up{v="1\"} or up{v=\""}'),
        ("up{v='{{ .Version }}'}", "1'} or up{v='", r"up{v='1\'} or up{v=\''}"),
        ('up{v="{{ .Version }}"}', "1\\", r'up{v="1\\"}'),
        ('up{v="{{ .Version }}"}', "1\n2", r'up{v="1\n2"}'),
        ('up{v=~"{{ .Version }}"}', ".*", r'up{v=~"\\.\\*"}'),
        ('up{v=~"{{ .Version }}"}', "1|2", r'up{v=~"1\\|2"}'),
        ('up{v=~"{{ .Version }}"}', r"\E.*", r'up{v=~"\\\\E\\.\\*"}'),
        ("up{v=~`{{ .Version }}`}", "1.2", r"up{v=~`1\.2`}"),
        ('up{v="{{ .Version }}"}', "{{ .Namespace }}", 'up{v="{{ .Namespace }}"}'),
    ],
)
def test_value_is_nothing_but_text(query: str, version: str, asked: str) -> None:
    assert rendered(query, replace(SHOP, version=version)) == asked


def test_backquote_in_a_string_in_backquotes_is_refused() -> None:
    with pytest.raises(QueryError, match="backquote"):
        rendered("up{v=`{{ .Version }}`}", replace(SHOP, version="1` or up{v=`"))
