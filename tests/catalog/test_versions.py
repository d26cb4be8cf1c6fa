"""The lock, and which commit a version stands for."""

from __future__ import annotations

from pathlib import Path

import pytest

from kardinal.catalog.errors import NOWHERE, CatalogError
from kardinal.catalog.fetching import AllowedSources
from kardinal.catalog.inventory import read_inventory
from kardinal.catalog.lock import Locks, locked_names, read_lock, write_lock
from kardinal.catalog.values import Compiled
from tests.catalog.hierarchies import Hierarchy, component

COMMON = """
applications: [nginx]
parameters:
  components:
    nginx: {url: "${ROOT}/nginx.git", version: %s}
"""


@pytest.fixture
def hierarchy(tmp_path: Path) -> Hierarchy:
    made = Hierarchy(tmp_path)
    made.commit("nginx", component("nginx", defaults="{v: 1}"), tag="v1")
    made.configure(COMMON % "main")
    return made


def commit_of(compiled: Compiled, name: str = "nginx") -> str:
    return next(version.resolved for version in compiled.versions if version.name == name)


async def test_lock_names_every_source(hierarchy: Hierarchy) -> None:
    compiled = await hierarchy.compile()
    entries = read_lock(compiled.files["catalog.lock.yaml"])

    assert entries == compiled.versions
    assert [(entry.kind, entry.name, entry.requested) for entry in entries] == [
        ("component", "nginx", "main"),
        ("global", "global", ""),
        ("inventory", "t-acme", ""),
    ]
    assert write_lock(reversed(entries)) == compiled.files["catalog.lock.yaml"]


async def test_locked_commits_do_not_move(hierarchy: Hierarchy) -> None:
    first = await hierarchy.compile()
    later = hierarchy.commit("nginx", component("nginx", defaults="{v: 2}"))
    hierarchy.configure("applications: []")
    again = await hierarchy.compile(Locks(own=first.versions))
    moved = await hierarchy.compile(Locks(own=first.versions, update=locked_names(["nginx"])))
    everything = await hierarchy.compile(Locks(own=first.versions, update=locked_names([])))

    assert again.files == first.files
    assert commit_of(moved) == later
    assert moved.instances == ("nginx",)
    assert everything.instances == ()


async def test_a_changed_requested_version_is_resolved_again(hierarchy: Hierarchy) -> None:
    first = await hierarchy.compile()
    hierarchy.commit("nginx", component("nginx", defaults="{v: 2}"), tag="v2")
    hierarchy.configure(COMMON % "v2")
    locks = Locks(own=first.versions, update=locked_names(["global"]))

    assert commit_of(await hierarchy.compile(locks)) != commit_of(first)


async def test_upstream_comes_before_the_own_lock(hierarchy: Hierarchy) -> None:
    old = await hierarchy.compile()
    hierarchy.commit("nginx", component("nginx", defaults="{v: 2}"))
    new = await hierarchy.compile()
    both = await hierarchy.compile(Locks(own=old.versions, upstream=new.versions))

    assert commit_of(both) == commit_of(new) != commit_of(old)


async def test_a_bundle_pins_a_repository(hierarchy: Hierarchy) -> None:
    first = await hierarchy.compile()
    hierarchy.commit("nginx", component("nginx", defaults="{v: 2}"))
    pins = {hierarchy.url("nginx").removesuffix(".git"): commit_of(first)}

    assert commit_of(await hierarchy.compile(Locks(pins=pins))) == commit_of(first)
    with pytest.raises(CatalogError, match="on a branch or tag"):
        await hierarchy.compile(Locks(pins=dict.fromkeys(pins, "1" * 40)))


async def test_a_component_without_version_has_the_default_branch(hierarchy: Hierarchy) -> None:
    hierarchy.configure(COMMON.replace(", version: %s", ""))
    compiled = await hierarchy.compile()

    assert compiled.notices == (
        f"component nginx has no version: its default branch counts, at {commit_of(compiled)[:8]}",
    )


@pytest.mark.parametrize("version", ["v1", "main", None])
async def test_a_version_is_a_tag_a_branch_or_a_commit(hierarchy: Hierarchy, version: str | None) -> None:
    commit = hierarchy.commit("nginx", component("nginx", defaults="{v: 3}"), tag="v3")
    hierarchy.configure(COMMON % (version or commit))
    parameters = (await hierarchy.parameters())["nginx"]["nginx"]

    assert parameters["v"] == (1 if version == "v1" else 3)


async def test_url_of_a_component_is_the_base_url_and_its_name(hierarchy: Hierarchy) -> None:
    hierarchy.spec["componentBaseURL"] = hierarchy.root.as_uri() + "/"
    hierarchy.configure("applications: [nginx]")
    (found,) = [entry for entry in (await hierarchy.compile()).versions if entry.name == "nginx"]

    assert found.url == hierarchy.url("nginx")


@pytest.mark.parametrize(
    "text",
    ["[]", "version: 2\nsources: []", "version: 1\nsources: [{kind: component}]", "version: 1\nsources: [1]"],
)
def test_a_lock_of_others_is_refused(text: str) -> None:
    with pytest.raises(CatalogError) as caught:
        read_lock(text.encode())
    assert "delete it" in caught.value.remedy


class TestSources:
    """URLs that a tenant may use."""

    @pytest.mark.parametrize(
        ("sources", "url", "allowed"),
        [
            (["https://git.example.com/"], "https://git.example.com/any/thing.git", True),
            (["https://git.example.com/acme"], "https://git.example.com/acme/x", True),
            (["https://git.example.com/acme"], "https://git.example.com/acmes/x", False),
            (["https://git.example.com/acme/"], "https://git.example.com/other/x", False),
            (["https://git.example.com/acme/"], "https://GIT.example.com:443/acme/x.git", True),
            (["https://git.example.com/acme/"], "http://git.example.com/acme/x.git", False),
            (["https://git.example.com/acme/"], "https://git.example.com:8443/acme/x.git", False),
            (["https://git.example.com/acme/"], "https://git.example.com/acme/../other/x", False),
            (["ssh://git@git.example.com/acme/"], "git@git.example.com:acme/x.git", True),
            (["ssh://git@git.example.com/"], "https://git.example.com/acme/x.git", False),
            (["https://git.example.com/"], "file:///etc/x", False),
            (["https://git.example.com/"], "/etc/x", False),
            (["https://git.example.com/"], "http://169.254.169.254/latest", False),
        ],
    )
    def test_a_url_is_allowed_by_prefix(self, sources: list[str], url: str, allowed: bool, tmp_path: Path) -> None:
        assert is_allowed(tmp_path, url, sources=sources) is allowed

    def test_without_sources_the_folders_of_the_own_repositories_are_allowed(self, tmp_path: Path) -> None:
        assert is_allowed(tmp_path, f"{tmp_path.as_uri()}/any.git")
        assert not is_allowed(tmp_path, f"{tmp_path.parent.as_uri()}/any.git")

    async def test_error_names_the_line_to_add(self, hierarchy: Hierarchy) -> None:
        hierarchy.configure((COMMON % "main").replace("${ROOT}", "https://other.example.com/them"))
        with pytest.raises(CatalogError) as caught:
            await hierarchy.compile()

        assert caught.value.kind == "refused"
        assert caught.value.where.parameter == "components.nginx"
        assert caught.value.remedy == "Add to spec.sources of CatalogTenant t-acme: https://other.example.com/them/"


def is_allowed(root: Path, url: str, sources: list[str] | None = None) -> bool:
    """Return whether the tenant of a hierarchy with these `spec.sources` may use a URL."""
    documents = Hierarchy(root, {"sources": sources} if sources else {}).documents()
    allowed = AllowedSources(read_inventory(documents)["c-one"])
    try:
        allowed.check(url, NOWHERE)
    except CatalogError:
        return False
    return True
