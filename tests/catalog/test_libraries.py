"""Libraries of components, of jsonnetfiles and of the hierarchy: who may offer which name, and at which version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kardinal.catalog.compile import Collated, collate
from kardinal.catalog.errors import CatalogError
from kardinal.catalog.inventory import read_inventory
from tests.catalog.hierarchies import NO_LOCKS, Hierarchy, component
from tests.catalog.in_process import InProcessEngine


@pytest.fixture
def hierarchy(tmp_path: Path) -> Hierarchy:
    return Hierarchy(tmp_path)


def configure(hierarchy: Hierarchy, *components: str, more: str = "{}") -> None:
    urls = "".join(f'\n    {name}: {{url: "${{ROOT}}/{name}.git", version: main}}' for name in components)
    hierarchy.configure(
        f"applications: [{', '.join(components)}]\nparameters:\n  components:{urls}\n  commodore: {more}\n"
    )


async def collated(hierarchy: Hierarchy) -> Collated:
    async with hierarchy.sources() as sources:
        cluster = read_inventory(hierarchy.documents())["c-one"]
        return await collate(cluster, sources=sources, engine=InProcessEngine(), locks=NO_LOCKS)


async def contents(hierarchy: Hierarchy, start: str) -> dict[str, str]:
    """Return the content of each file that the layout shows below `start`, or the word `directory`."""
    links = (await collated(hierarchy)).layout.links
    return {
        path.removeprefix(start): target.read_text() if target.is_file() else "directory"
        for path, target in links.items()
        if path.startswith(start)
    }


async def refusal(hierarchy: Hierarchy) -> str:
    with pytest.raises(CatalogError) as caught:
        await collated(hierarchy)
    return str(caught.value)


async def test_libraries_of_components_have_their_names_and_aliases(hierarchy: Hierarchy) -> None:
    aliases = "{_metadata: {library_aliases: {old.libsonnet: a.libsonnet, gone.libsonnet: none.libsonnet}}}"
    files = {"lib/a.libsonnet": "{a: 1}", "lib/a-more.libsonnet": "{a: 2}", "lib/.hidden": ""}
    hierarchy.commit("a", component("a", defaults=aliases, **files))
    configure(hierarchy, "a")

    assert await contents(hierarchy, "dependencies/lib/") == {
        "a.libsonnet": "{a: 1}",
        "a-more.libsonnet": "{a: 2}",
        "old.libsonnet": "{a: 1}",
    }
    assert (await collated(hierarchy)).notices == [
        "Component a has no library none.libsonnet, which its alias gone.libsonnet names."
    ]


async def test_a_library_with_the_name_of_no_or_another_component_is_refused(hierarchy: Hierarchy) -> None:
    hierarchy.commit("a", component("a", **{"lib/b.libsonnet": "{}"}))
    configure(hierarchy, "a")
    assert "lib/b.libsonnet: the name of a library of this component begins with a" in await refusal(hierarchy)

    hierarchy.commit("a", {"lib/b.libsonnet": None, "lib/a-b.libsonnet": "{}"})
    hierarchy.commit("a-b", component("a-b"))
    configure(hierarchy, "a", "a-b")
    assert "belongs to component a-b" in await refusal(hierarchy)


REPLACED = "{_metadata: {deprecated: true, replaced_by: new}}"


@pytest.mark.parametrize(
    ("replaces", "old", "words"),
    [
        pytest.param("replaces: old", REPLACED, "", id="agreed"),
        pytest.param("replaces: old", "{}", "begins with the name of component old", id="not deprecated"),
        pytest.param("replaces: old", REPLACED.replace("new", "x"), "begins with the name", id="replaced by another"),
        pytest.param("x: y", REPLACED, "begins with the name of component old", id="does not replace"),
    ],
)
async def test_an_alias_takes_the_name_of_a_replaced_component(
    hierarchy: Hierarchy, replaces: str, old: str, words: str
) -> None:
    metadata = f"{{_metadata: {{{replaces}, library_aliases: {{old.libsonnet: new.libsonnet}}}}}}"
    hierarchy.commit("new", component("new", defaults=metadata, **{"lib/new.libsonnet": "{}"}))
    hierarchy.commit("old", component("old", defaults=old))
    configure(hierarchy, "new", "old")
    if words:
        assert words in await refusal(hierarchy)
    else:
        assert "old.libsonnet" in await contents(hierarchy, "dependencies/lib/")


async def test_two_components_do_not_alias_one_name(hierarchy: Hierarchy) -> None:
    for name in ("a", "b"):
        aliases = f"{{_metadata: {{library_aliases: {{shared.libsonnet: {name}.libsonnet}}}}}}"
        hierarchy.commit(name, component(name, defaults=aliases, **{f"lib/{name}.libsonnet": "{}"}))
    configure(hierarchy, "a", "b")
    assert "components a and b both alias shared.libsonnet" in await refusal(hierarchy)


def listed(*entries: dict[str, Any]) -> str:
    return json.dumps({"version": 1, "dependencies": list(entries), "legacyImports": True})


def git(hierarchy: Hierarchy, name: str, version: str = "main", **more: Any) -> dict[str, Any]:
    return {"source": {"git": {"remote": hierarchy.url(name), **more}}, "version": version}


async def test_jsonnetfiles_name_libraries_that_name_others(hierarchy: Hierarchy) -> None:
    hierarchy.commit("deep", {"deep.libsonnet": "{}"})
    nested = listed(git(hierarchy, "deep"), {"source": {"local": {"directory": "../beside"}}, "name": "next"})
    hierarchy.commit("lib", {"sub/jsonnetfile.json": nested, "sub/x.libsonnet": "{}", "beside/y.libsonnet": "{}"})
    hierarchy.commit("a", component("a", **{"jsonnetfile.json": listed(git(hierarchy, "lib", subdir="sub"))}))
    configure(hierarchy, "a")
    place = str(hierarchy.root).strip("/")

    assert sorted(await contents(hierarchy, "vendor/")) == sorted(
        ["a", "sub", "deep", "next", f"{place}/lib/sub", f"{place}/deep"]
    )
    versions = (await collated(hierarchy)).fetcher.versions
    assert [entry.name for entry in versions if entry.kind == "library"] == [f"{place}/deep", f"{place}/lib/sub"]


async def test_a_jsonnetfile_may_be_a_template(hierarchy: Hierarchy) -> None:
    hierarchy.commit("lib", {"x.libsonnet": "1"}, tag="v1")
    template = listed(git(hierarchy, "lib", "v9")).replace('"v9"', 'std.extVar("version")')
    defaults = "{jsonnetfile_parameters: {version: v1}}"
    hierarchy.commit("a", component("a", defaults=defaults, **{"jsonnetfile.jsonnet": template}))
    configure(hierarchy, "a")
    (found,) = [entry for entry in (await collated(hierarchy)).fetcher.versions if entry.kind == "library"]

    assert found.requested == "v1"


async def test_a_library_has_one_version(hierarchy: Hierarchy) -> None:
    hierarchy.commit("lib", {"x.libsonnet": "1"}, tag="v1")
    for name, version in (("a", "v1"), ("b", "main")):
        hierarchy.commit(name, component(name, **{"jsonnetfile.json": listed(git(hierarchy, "lib", version))}))
    configure(hierarchy, "a", "b")
    error = await refusal(hierarchy)

    assert "has version main here, and v1 in component a@" in error


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"source": {"local": {"directory": "../../etc"}}}, "leads out of the repository"),
        ({"source": {"http": {}}}, "is no dependency on git or local"),
        ({"source": {"git": {"remote": "https://other.example.com/x"}}, "version": "v1"}, "may not use https://other"),
    ],
)
async def test_a_jsonnetfile_is_refused(hierarchy: Hierarchy, entry: dict[str, Any], words: str) -> None:
    hierarchy.commit("a", component("a", **{"jsonnetfile.json": listed(entry)}))
    configure(hierarchy, "a")
    assert words in await refusal(hierarchy)


async def test_the_hierarchy_lists_files_of_libraries(hierarchy: Hierarchy) -> None:
    hierarchy.commit("lib", {"src/x.libsonnet": "{x: 1}", "tpl.j2": "hello"})
    hierarchy.commit("a", component("a"))
    files = "[{libfile: src/x.libsonnet, targetfile: x.libsonnet}, {libfile: tpl.j2, targetfile: deep/t.j2}]"
    configure(hierarchy, "a", more=f'{{jsonnet_libs: [{{name: l, repository: "${{ROOT}}/lib.git", files: {files}}}]}}')

    assert await contents(hierarchy, "dependencies/lib") == {
        "/deep/t.j2": "hello",
        "/x.libsonnet": "{x: 1}",
        "s/l": "directory",
    }
    assert "library l has no version" in " ".join((await collated(hierarchy)).fetcher.notices)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ("{libfile: ../x, targetfile: x}", "both relative"),
        ("{libfile: none, targetfile: x}", "there is no file none"),
        ("{libfile: tpl.j2, targetfile: x}, {libfile: tpl.j2, targetfile: ./x}", "two libraries give lib/x"),
    ],
)
async def test_listed_files_are_refused(hierarchy: Hierarchy, files: str, words: str) -> None:
    hierarchy.commit("lib", {"tpl.j2": "hello"})
    hierarchy.commit("a", component("a"))
    configure(
        hierarchy, "a", more=f'{{jsonnet_libs: [{{name: l, repository: "${{ROOT}}/lib.git", files: [{files}]}}]}}'
    )
    assert words in await refusal(hierarchy)


async def test_a_git_dependency_lies_within_its_component(hierarchy: Hierarchy) -> None:
    hierarchy.commit("charts", {"nginx/Chart.yaml": "name: nginx\n"}, tag="v2")
    dependency = f'{{type: git, source: "{hierarchy.url("charts")}", ref: v2, subdir: nginx, output_path: "%s"}}'
    inside = dependency % "${_base_directory}/charts/nginx"
    hierarchy.commit("a", component("a", **{"sub/file": "x"}))
    hierarchy.commit("a", {"class/a.yml": f"parameters: {{kapitan: {{dependencies: [{inside}]}}}}"})
    configure(hierarchy, "a")
    links = (await collated(hierarchy)).layout.links

    assert "dependencies/a" not in links
    assert (links["dependencies/a/charts/nginx"] / "Chart.yaml").read_text() == "name: nginx\n"
    assert (links["dependencies/a/sub"] / "file").read_text() == "x"


@pytest.mark.parametrize(
    ("dependency", "words"),
    [
        ("{type: git, source: x, output_path: ../x}", "no place for a dependency"),
        (
            "{type: git, source: 'https://other.example.com/x', output_path: dependencies/x}",
            "may not use https://other",
        ),
        ("{type: ftp, source: x, output_path: dependencies/x}", "of type ftp are not fetched"),
    ],
)
async def test_a_dependency_is_refused(hierarchy: Hierarchy, dependency: str, words: str) -> None:
    hierarchy.commit("a", component("a"))
    hierarchy.commit("a", {"class/a.yml": f"parameters: {{kapitan: {{dependencies: [{dependency}]}}}}"})
    configure(hierarchy, "a")
    assert words in await refusal(hierarchy)
