"""Jinja2 inputs: their variables and filters, and the ways out of the sandbox that are closed."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.catalog.errors import CatalogError
from kardinal.catalog.values import Merged
from tests.catalog.compilations import Compilation, jsonnet_input


def jinja2_input(path: str = "main.j2", **options: Any) -> dict[str, Any]:
    return jsonnet_input(path, input_type="jinja2", **options)


def text_of(compilation: Compilation, template: str, **parameters: Any) -> str:
    compilation.component(main_j2=template)
    return compilation.render(jinja2_input(), parameters=parameters).files["web/main.j2"].decode()


def test_file_is_rendered_with_the_inventory(compilation: Compilation) -> None:
    compilation.component(
        main_j2="{{ inventory.parameters.x }} {{ inventory_global.api.parameters.x }} {{ target }}\n"
        "{% for key in ['a'] %}\n  {{ input_params[key] }}\n{% endfor %}\n{{ input_params.compile_path }}\n"
    )
    rendered = compilation.render(
        jinja2_input(input_params={"a": "b"}),
        parameters={"x": 1},
        others={"api": Merged((), (), {"x": 2})},
    )
    assert rendered.files == {"web/main.j2": b"1 2 web\n  b\ncompiled/web/web"}


def test_directory_keeps_names_and_modes(compilation: Compilation) -> None:
    tree = compilation.tree(
        "dependencies/web", {"t/a.sh.j2": "{{ 1 + 1 }}", "t/sub/b.txt": "b", "t/.hidden": "{{ x }}"}
    )
    (tree / "t/a.sh.j2").chmod(0o755)
    rendered = compilation.render(jinja2_input("t", suffix_remove=True))
    assert rendered.files == {"web/a.sh": b"2", "web/sub/b.txt": b"b"}
    assert rendered.executable == {"web/a.sh"}


def test_missing_template_is_no_error(compilation: Compilation) -> None:
    compilation.component()
    assert compilation.render(jinja2_input("none")).files == {}


def test_template_includes_beside_itself_then_libraries(compilation: Compilation) -> None:
    compilation.tree("dependencies/lib", {"web-x.j2": "library"})
    compilation.tree(
        "dependencies/web", {"t/main.j2": "{% include 'b.j2' %} {% include 'lib/web-x.j2' %}", "t/b.j2": "b"}
    )
    assert compilation.render(jinja2_input("t/main.j2")).files == {"web/main.j2": b"b library"}


def test_template_changes_its_own_variables_alone(compilation: Compilation) -> None:
    template = "{% do inventory.parameters.items_.append(3) %}{{ inventory.parameters.items_ }}"
    items = [1, 2]
    assert text_of(compilation, template, items_=items) == "[1, 2, 3]"
    assert items == [1, 2]


def test_references_are_replaced(compilation: Compilation) -> None:
    compilation.component(main_j2="password: {{ inventory.parameters.p }}")
    rendered = compilation.render(
        jinja2_input(),
        parameters={"p": "?{vaultkv:a/b}"},
        references={"?{vaultkv:a/b}": "?{vaultkv:a/b:12345678}"},
    )
    assert rendered.files == {"web/main.j2": b"password: ?{vaultkv:a/b:12345678}"}


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("'a' | sha256", "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"),
        ("'é' | b64encode", "w6k="),
        ("'w6k=' | b64decode", "é"),
        ("{'b': [1], 'a': none} | yaml", "a: null\nb:\n- 1\n"),
        ("['Yes' | bool, 'no' | bool, none | bool, 1 | bool]", "[True, False, None, True]"),
        ("'web/*.j2' | fileglob | join", "dependencies/web/main.j2"),
        ("('2020-02-01 00:00:00' | to_datetime).year", "2020"),
        ("'%Y-%m-%d %H' | strftime(0)", "1970-01-01 00"),
        ("'aXbX' | regex_replace('x', '-', true)", "a-b-"),
        ("'a.b' | regex_escape", "a\\.b"),
        ("'one=1' | regex_search('(\\\\w+)=(\\\\d)', '\\\\2', '\\\\1')", "['1', 'one']"),
        ("'one=1' | regex_search('(?P<n>\\\\w+)=', '\\\\g<n>')", "['one']"),
        ("'one' | regex_search('N', ignorecase=true)", "n"),
        ("'a1b2' | regex_findall('[0-9]')", "['1', '2']"),
        ("true | ternary('y', 'n') ~ (none | ternary('y', 'n', 'x'))", "yx"),
        ("[1, 2, 3] | shuffle(1)", "[2, 3, 1]"),
        ("'?{vaultkv:a/b}' | reveal_maybe | length", "14"),
        ("[{'name': 'a', 'x': 1}, {'name': 'a', 'y': 2}] | merge_strategic", "[{'name': 'a', 'x': 1, 'y': 2}]"),
    ],
)
def test_filter(compilation: Compilation, expression: str, text: str) -> None:
    assert text_of(compilation, f"{{{{ {expression} }}}}") == text


@pytest.mark.parametrize(
    "expression",
    [
        "''.__class__.__mro__[1].__subclasses__()",
        "inventory.__init__.__globals__",
        "(inventory | attr('__class__'))",
        "cycler.__init__.__globals__.os.popen('id').read()",
        "self._TemplateReference__context",
        "'{0.__class__}'.format(1)",
        "'{0.__class__}'.format_map({'0': 1})",
        "('x' | to_datetime('x')).now()",
        "('x' | to_datetime('x')).today()",
        "[1, 2] | random",
        "[1, 2] | shuffle",
        "'%Y' | strftime",
        "{} | toml",
        "'/etc/*' | fileglob",
        "'../../*' | fileglob",
    ],
)
def test_way_out_is_refused(compilation: Compilation, expression: str) -> None:
    with pytest.raises(CatalogError) as raised:
        text_of(compilation, f"\n{{{{ {expression} }}}}")
    assert raised.value.kind in ("refused", "render")
    assert raised.value.where.file == "dependencies/web/main.j2"
    assert raised.value.remedy


@pytest.mark.parametrize("name", ["/etc/hostname", "../../../../etc/hostname", "link"])
def test_include_of_a_file_of_the_host_is_refused(compilation: Compilation, name: str) -> None:
    tree = compilation.component(main_j2=f"{{% include '{name}' %}}")
    (tree / "link").symlink_to("/etc/hostname")
    with pytest.raises(CatalogError) as raised:
        compilation.render(jinja2_input())
    assert raised.value.kind == "refused"


@pytest.mark.parametrize(
    ("template", "line", "message"),
    [
        ("\n{{ missing }}", 2, "'missing' is undefined"),
        ("\n\n{% if %}", 3, "Expected an expression"),
        ("\n{{ 1 / 0 }}", 2, "division by zero"),
        ("{% include 'none' %}", 1, "is not found"),
        ("{% include 'main.j2' %}", 0, "without end"),
        ("{{ lipsum() }}", 1, "lipsum"),
    ],
)
def test_error_names_file_and_line(compilation: Compilation, template: str, line: int, message: str) -> None:
    with pytest.raises(CatalogError, match=message) as raised:
        text_of(compilation, template)
    assert (raised.value.where.file, raised.value.where.line) == ("dependencies/web/main.j2", line)


def test_jsonnet_renders_templates(compilation: Compilation) -> None:
    compilation.component(
        main_jsonnet="{ o: { v: (import 'lib/kapitan.libjsonnet').jinja2_template('web/t.j2', { a: 1 }) } }",
        t_j2="{{ a }}",
    )
    assert compilation.render(jsonnet_input()).files == {"web/o.yaml": b"v: '1'\n"}


def test_half_of_a_surrogate_pair_is_an_error(compilation: Compilation) -> None:
    """gojsonnet would end the process."""
    compilation.component(
        main_jsonnet="{ o: { v: std.native('jinja2_render_file')('web/t.j2', '{}') } }", t_j2="{{ '\\ud800' }}"
    )
    with pytest.raises(CatalogError, match="surrogate"):
        compilation.render(jsonnet_input())
