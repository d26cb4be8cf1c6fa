"""`kardinal catalog compile` on bare repositories, as a user calls it."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kardinal.cli.main import main
from tests.catalog.hierarchies import Hierarchy

CLASS = """
parameters:
  kapitan:
    compile:
      - {input_paths: ["${_base_directory}/main.jsonnet"], input_type: jsonnet, output_path: "${_instance}"}
"""
PUBLIC = "https://git.example.com/acme"


@pytest.fixture
def hierarchy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hierarchy:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "repositories"
    root.mkdir()
    made = Hierarchy(root)
    for name in ("web", "db"):
        values = {"class/defaults.yml": f"parameters: {{{name}: {{}}}}\n", f"class/{name}.yml": CLASS}
        made.commit(name, values | {"main.jsonnet": f"{{ object: {{ name: '{name}' }} }}"})
    configure(made, "web, db")
    return made


def configure(hierarchy: Hierarchy, applications: str, version: str = "main", url: str = "${ROOT}") -> None:
    components = "".join(f'\n    {name}: {{url: "{url}/{name}.git", version: {version}}}' for name in ("web", "db"))
    hierarchy.configure(f"applications: [{applications}]\nparameters:\n  components:{components}\n")


def kardinal(hierarchy: Hierarchy, *arguments: str) -> Result:
    return run("-f", str(hierarchy.write_documents()), *arguments)


def run(*arguments: str) -> Result:
    """Run the command on a thread, as it has an event loop of its own."""
    with ThreadPoolExecutor(1) as pool:
        call = ["catalog", "compile", *arguments]
        result = pool.submit(CliRunner().invoke, main, call, prog_name="kardinal").result()
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def files_of(directory: Path) -> dict[str, str]:
    return {path.relative_to(directory).as_posix(): path.read_text() for path in directory.rglob("*") if path.is_file()}


def test_a_catalog_is_written_once(hierarchy: Hierarchy, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = kardinal(hierarchy, "c-one", "--output", str(out))
    files = files_of(out)
    again = kardinal(hierarchy, "c-one", "--output", str(out))

    assert (first.exit_code, first.stdout) == (0, "c-one: 2 instances, 2 files, 3 added, 0 changed, 0 deleted\n")
    assert sorted(files) == ["catalog.lock.yaml", "manifests/db/object.yaml", "manifests/web/object.yaml"]
    assert files["manifests/web/object.yaml"] == "name: web\n"
    assert again.stdout == "c-one: 2 instances, 2 files, unchanged\n"
    assert (
        again.stderr
        == f"Note: c-one: the versions are those of {out}/catalog.lock.yaml; --update resolves them again\n"
    )
    assert files_of(out) == files


def test_only_the_catalog_in_a_directory_is_replaced(hierarchy: Hierarchy, tmp_path: Path) -> None:
    out = tmp_path / "out"
    kardinal(hierarchy, "c-one", "--output", str(out))
    for path in ("README.md", "manifests/.keep", "manifests/extra/file.yaml", "refs/old"):
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_text("x")
    configure(hierarchy, "web")
    kardinal(hierarchy, "c-one", "--output", str(out), "--update", "global")

    assert sorted(files_of(out)) == ["README.md", "catalog.lock.yaml", "manifests/.keep", "manifests/web/object.yaml"]
    assert not (out / "manifests" / "db").exists()


def test_a_link_in_place_of_manifests_is_not_followed(hierarchy: Hierarchy, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (out / "manifests").symlink_to(tmp_path / "elsewhere")
    result = kardinal(hierarchy, "c-one", "--output", str(out))

    assert result.exit_code == 1
    assert "manifests is a symbolic link" in result.stderr
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_lock_of_the_directory_holds_versions_until_an_update(hierarchy: Hierarchy, tmp_path: Path) -> None:
    out = tmp_path / "out"
    kardinal(hierarchy, "c-one", "--output", str(out))
    for name in ("web", "db"):
        hierarchy.commit(name, {"main.jsonnet": "{ object: { name: 'new' } }"})

    def names(*arguments: str) -> list[str]:
        kardinal(hierarchy, "c-one", "--output", str(out), *arguments)
        return [files_of(out)[f"manifests/{name}/object.yaml"] for name in ("web", "db")]

    assert names() == ["name: web\n", "name: db\n"]
    assert names("--update", "web") == ["name: new\n", "name: db\n"]
    assert names("--update") == ["name: new\n", "name: new\n"]


def test_the_difference_from_a_catalog_is_printed(hierarchy: Hierarchy, tmp_path: Path) -> None:
    out = tmp_path / "out"
    kardinal(hierarchy, "c-one", "--output", str(out))
    before = files_of(out)
    hierarchy.commit("web", {"main.jsonnet": "{ object: { name: 'new' } }"})
    same = kardinal(hierarchy, "c-one", "--diff", str(out))
    moved = kardinal(hierarchy, "c-one", "--diff", str(out), "--update", "web").stdout

    assert same.stdout == "c-one: 2 instances, 2 files\n"
    assert "manifests/web/object.yaml" in moved
    assert "-name: web\n+name: new\n" in moved
    assert files_of(out) == before


def test_another_lock_file_is_read(hierarchy: Hierarchy, tmp_path: Path) -> None:
    out = tmp_path / "out"
    kardinal(hierarchy, "c-one", "--output", str(out))
    lock = tmp_path / "lock.yaml"
    lock.write_text((out / "catalog.lock.yaml").read_text())
    hierarchy.commit("web", {"main.jsonnet": "{ object: { name: 'new' } }"})
    kardinal(hierarchy, "c-one", "--output", str(tmp_path / "other"), "--lock", str(lock))

    assert files_of(tmp_path / "other") == files_of(out)


def test_all_clusters_have_a_directory_each(hierarchy: Hierarchy, tmp_path: Path) -> None:
    hierarchy.commit("t-acme", {"c-two.yml": "applications: [nothing]\n"})
    file = hierarchy.root / "inventory.yaml"
    hierarchy.write_documents()
    text = file.read_text()
    file.write_text(text + "---\n" + text.partition("---\n")[2].replace("c-one", "c-two"))
    result = run("--all", "-f", str(file), "--output", str(tmp_path / "out"))

    assert result.exit_code == 1
    assert "c-one: 2 instances" in result.stdout
    assert "c-two: parameter components.nothing: unknown component 'nothing'" in result.stderr
    assert sorted(files_of(tmp_path / "out")) == [
        f"c-one/{path}" for path in ("catalog.lock.yaml", "manifests/db/object.yaml", "manifests/web/object.yaml")
    ]


def test_json_has_versions_changes_and_notices(hierarchy: Hierarchy, tmp_path: Path) -> None:
    configure(hierarchy, "web", version='""')
    result = kardinal(hierarchy, "c-one", "-o", "json", "--output", str(tmp_path / "out"))
    (found,) = json.loads(result.stdout)["clusters"]

    assert found["cluster"] == "c-one"
    assert found["instances"] == ["web"]
    assert found["files"] == ["catalog.lock.yaml", "manifests/web/object.yaml"]
    assert found["changes"] == {"added": found["files"], "changed": [], "deleted": []}
    assert [version["name"] for version in found["versions"]] == ["web", "global", "t-acme"]
    (notice,) = found["notices"]
    assert notice.endswith(found["versions"][0]["resolved"][:8])


def test_json_has_the_kind_of_an_error(hierarchy: Hierarchy) -> None:
    configure(hierarchy, "wep")
    result = kardinal(hierarchy, "c-one", "-o", "json")
    error: dict[str, Any] = json.loads(result.stdout)["clusters"][0]["error"]

    assert result.exit_code == 1
    assert (error["kind"], error["where"]) == ("invalid", {"parameter": "components.wep"})
    assert error["remedy"].startswith("Did you mean web?")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["c-on"], 1, "Did you mean c-one?"),
        ([], 2, "name one CLUSTER, or pass --all"),
        (["c-one", "--all"], 2, "name one CLUSTER, or pass --all"),
        (["--all", "--lock", "x"], 2, "--lock is the lock of one cluster"),
    ],
)
def test_a_wrong_call_is_explained(hierarchy: Hierarchy, arguments: list[str], code: int, words: str) -> None:
    result = kardinal(hierarchy, *arguments)

    assert result.exit_code == code
    assert words in result.stderr


class TestRemote:
    """Repositories behind URLs, which the Git configuration of the caller rewrites here."""

    @pytest.fixture(autouse=True)
    def rewritten(self, hierarchy: Hierarchy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        configure(hierarchy, "web, db", url=PUBLIC)
        hierarchy.spec |= {"global": {"url": f"{PUBLIC}/global.git"}, "inventory": {"url": f"{PUBLIC}/t-acme.git"}}
        config = tmp_path / "gitconfig"
        config.write_text(f'[url "{hierarchy.root.as_uri()}/"]\n\tinsteadOf = {PUBLIC}/\n')
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))

    def test_mirrors_serve_without_the_host(self, hierarchy: Hierarchy, tmp_path: Path) -> None:
        out = tmp_path / "out"
        assert "was never fetched" in kardinal(hierarchy, "c-one", "--offline").stderr
        first = kardinal(hierarchy, "c-one", "--output", str(out))
        before = files_of(out)
        for name in ("web", "db", "global", "t-acme"):
            shutil.rmtree(hierarchy.root / f"{name}.git")
        offline = kardinal(hierarchy, "c-one", "--offline")
        again = kardinal(hierarchy, "c-one", "--output", str(out))

        assert first.exit_code == offline.exit_code == again.exit_code == 0
        assert files_of(out) == before

    def test_a_repository_that_is_gone_is_an_error_of_kind_fetch(self, hierarchy: Hierarchy) -> None:
        shutil.rmtree(hierarchy.root / "web.git")
        result = kardinal(hierarchy, "c-one", "-o", "json")

        assert json.loads(result.stdout)["clusters"][0]["error"]["kind"] == "fetch"

    def test_a_locked_commit_survives_a_forced_push(self, hierarchy: Hierarchy, tmp_path: Path) -> None:
        out = tmp_path / "out"
        kardinal(hierarchy, "c-one", "--output", str(out))
        before = files_of(out)["manifests/web/object.yaml"]
        shutil.rmtree(hierarchy.root / "web.git")
        values = {"class/defaults.yml": "parameters: {web: {}}\n", "class/web.yml": CLASS}
        hierarchy.commit("web", values | {"main.jsonnet": "{ object: { name: 'other' } }"})
        kardinal(hierarchy, "c-one", "--output", str(tmp_path / "fresh"))
        result = kardinal(hierarchy, "c-one", "--output", str(out))

        assert result.exit_code == 0, result.stderr
        assert files_of(out)["manifests/web/object.yaml"] == before
        assert files_of(tmp_path / "fresh")["manifests/web/object.yaml"] == "name: other\n"
