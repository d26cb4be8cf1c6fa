"""The steps that edit files in any text: what they change in a tree, and where they refuse to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kardinal.git.objects import TreeEntry
from kardinal.promotion.api import Bundle
from kardinal.promotion.steps.effect import NoEffect, Notes
from kardinal.tree.edit import EditError, Tree
from tests.support.trees import Files, promoted_bundle

APP = "ghcr.io/acme/app"
VALUES = f"image:\n  repository: {APP}\n  tag: '1.0' # x\n"
BUNDLE = promoted_bundle(f"{APP}:1.1")
STREAM = """\
---
---
kind: Service
metadata: {name: app}
spec: {port: 80}
--- # two
kind: Deployment
metadata: {name: app}
spec: {replicas: 1}
---
kind: Deployment
metadata: {name: worker}
spec: {replicas: 1}
"""


def refusal(files: Files, *steps: tuple[str, Mapping[str, Any]], of: Bundle = BUNDLE, **arguments: Any) -> str:
    with pytest.raises(EditError) as caught:
        files.changes(*steps, of=of, **arguments)
    return str(caught.value)


def test_helm_set_image_reads_update_helm_and_its_config_decides(tmp_path: Path) -> None:
    text = f"app: {{image: '{APP}:1'}}\n"
    files = Files(tmp_path, {"values.yaml": VALUES, "other.yaml": text, "chart/values.json": f'{{"image": "{APP}:0"}}'})
    assert files.changes(("helm-set-image", {}), of=BUNDLE) == {"values.yaml": VALUES.replace("1.0", "1.1").encode()}
    update = {
        "strategy": "helm",
        "helm": {"file": "other.yaml", "values": [{"path": "app.image", "value": "reference"}]},
    }
    assert files.changes(("helm-set-image", {}), of=BUNDLE, update=update) == {
        "other.yaml": text.replace(":1'", ":1.1'").encode()
    }
    config = {"file": "chart/values.json", "values": [{"path": "image", "value": "reference"}]}
    assert files.changes(("helm-set-image", config), of=BUNDLE, update=update) == {
        "chart/values.json": f'{{"image": "{APP}:1.1"}}'.encode()
    }


def test_update_images_selects_and_verify_effect_lets_a_mirror_stay(tmp_path: Path) -> None:
    mirror = VALUES.replace(APP, "mirror.example.com/app")
    files = Files(tmp_path, {"values.yaml": mirror, "main.tf": f"{APP}:1 ghcr.io/acme/web:1"})
    both = promoted_bundle(f"{APP}:1.1", "ghcr.io/acme/web:2")
    assert "takes 2 images" in refusal(files, ("helm-set-image", {}), of=both)
    one = {"images": ["app"]}
    assert "is about mirror.example.com/app, not" in refusal(files, ("helm-set-image", {}), of=both, update=one)
    files.changes(
        ("helm-set-image", {}),
        ("replace", {"files": ["main.tf"]}),
        of=both,
        update=one | {"verifyEffect": "off"},
    )
    assert files.read("values.yaml") == mirror.replace("1.0", "1.1")
    assert files.read("main.tf") == f"{APP}:1.1 ghcr.io/acme/web:1"
    absent = refusal(files, ("helm-set-image", {}), of=both, update={"images": ["ap"]})
    assert "has no image of the name or repository ap" in absent


@pytest.mark.parametrize("entry", ["web", "acme/web", "docker.io/acme/web"])
def test_update_images_takes_the_name_of_an_image_or_its_repository(tmp_path: Path, entry: str) -> None:
    files = Files(tmp_path, {"main.tf": f"{APP}:1 acme/web:1"})
    both = promoted_bundle(f"{APP}:1.1", "acme/web:2")
    files.changes(("replace", {"files": ["main.tf"]}), of=both, update={"images": [entry]})
    assert files.read("main.tf") == f"{APP}:1 acme/web:2"


def test_helm_set_image_has_nothing_to_change_the_second_time(tmp_path: Path) -> None:
    files = Files(tmp_path, {"values.yaml": VALUES})
    files.changes(("helm-set-image", {}), of=BUNDLE)
    tree = files.tree
    files.changes(("helm-set-image", {}), of=BUNDLE)
    assert files.tree == tree


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"value.yaml": VALUES}, "environments/dev/values.yaml: no such file; did you mean value.yaml?"),
        ({"values.yaml/x": "a"}, "environments/dev/values.yaml: is a directory; name a file in it"),
        ({"values.yaml": "a: ["}, "environments/dev/values.yaml: invalid YAML: line 2"),
        ({"values.yaml": "a: 1"}, "environments/dev/values.yaml: has no value `image`"),
    ],
)
def test_a_values_file_that_cannot_take_the_image_is_named(tmp_path: Path, files: dict[str, str], message: str) -> None:
    assert message in refusal(Files(tmp_path, files), ("helm-set-image", {}))


@pytest.mark.parametrize(
    ("document", "replaced"),
    [
        ({"kind": "Service"}, "port: 80"),
        ({"kind": "Deployment", "name": "worker"}, "name: worker}\nspec: {replicas: 1"),
        ({"index": 1}, "name: app}\nspec: {replicas: 1"),
    ],
)
def test_yaml_update_sets_a_value_of_one_document(tmp_path: Path, document: dict[str, Any], replaced: str) -> None:
    files = Files(tmp_path, {"all.yaml": STREAM})
    path = "spec.port" if "port" in replaced else "spec.replicas"
    config = {"file": "all.yaml", "updates": [{"path": path, "value": 3}], "document": document}
    changes = files.changes(("yaml-update", config), of=BUNDLE)
    assert changes == {"all.yaml": STREAM.replace(replaced, replaced.rpartition(" ")[0] + " 3", 1).encode()}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            None,
            "3 documents fit; say by `document` which one: the file holds Service app, Deployment app, Deployment w",
        ),
        ({"name": "app"}, "2 documents fit"),
        ({"kind": "Servce"}, "no document fits `document`; the file holds Service app"),
        ({"index": 3}, "no document fits"),
    ],
)
def test_yaml_update_never_guesses_a_document(tmp_path: Path, document: Any, message: str) -> None:
    config = {"file": "all.yaml", "updates": [{"path": "spec.replicas", "value": 3}]}
    files = Files(tmp_path, {"all.yaml": STREAM})
    assert message in refusal(files, ("yaml-update", config | ({"document": document} if document else {})))


def test_yaml_update_sets_all_values_or_none(tmp_path: Path) -> None:
    files = Files(tmp_path, {"a.json": '{\n  "a": {"b": 1},\n  "c": "x"\n}\n'})
    updates = [
        {"path": "a.b", "value": 2},
        {"path": "c", "value": None},
        {"path": "a.new", "value": "y", "create": True},
    ]
    files.changes(("yaml-update", {"file": "a.json", "updates": updates}), of=BUNDLE)
    assert files.read("a.json") == '{\n  "a": {"b": 2, "new": "y"},\n  "c": null\n}\n'
    updates = [{"path": "a.b", "value": 3}, {"path": "a.absent", "value": 3}]
    message = refusal(files, ("yaml-update", {"file": "a.json", "updates": updates}))
    assert message == "environments/dev/a.json: a.absent: no key 'absent' in a (line 2); it has b, new"


def test_replace_sets_the_version_in_every_file(tmp_path: Path) -> None:
    files = Files(tmp_path, {"main.tf": f'image = "{APP}:1.0"\n', "run.sh": f"docker run {APP}:1.0 {APP}-x:1.0\n"})
    update = {"strategy": "replace", "replace": {"files": ["main.tf", "run.sh"]}}
    files.changes(("replace", {}), of=BUNDLE, update=update)
    assert files.read("main.tf") == f'image = "{APP}:1.1"\n'
    assert files.read("run.sh") == f"docker run {APP}:1.1 {APP}-x:1.0\n"


def test_replace_takes_a_literal(tmp_path: Path) -> None:
    files = Files(tmp_path, {"app.env": "IMAGE=app:1.0\n"})
    files.changes(("replace", {"files": ["app.env"], "literal": "IMAGE=app"}), of=BUNDLE)
    assert files.read("app.env") == "IMAGE=app:1.1\n"


def test_replace_wants_every_image_in_some_file_and_some_image_in_every_file(tmp_path: Path) -> None:
    files = Files(tmp_path, {"a": f"{APP}:1", "b": "ghcr.io/acme/web:1", "c": "ghcr.io/acme/ap:1"})
    both = promoted_bundle(f"{APP}:2", "ghcr.io/acme/web:2")
    files.changes(("replace", {"files": ["a", "b"]}), of=both)
    assert (files.read("a"), files.read("b")) == (f"{APP}:2", "ghcr.io/acme/web:2")
    assert refusal(files, ("replace", {"files": ["a"]}), of=both).startswith(
        "environments/dev/a: ghcr.io/acme/web is in none of them with a version"
    )
    assert refusal(files, ("replace", {"files": ["a", "c"]})).startswith(f"environments/dev/c: does not hold '{APP}'")
    assert "environments/dev: no files to replace in. List them in update.replace.files" in refusal(
        files, ("replace", {})
    )


CHARTS = [{"repository": "https://charts.example.com", "name": "web", "version": "2"}]
CHART = "dependencies: [{name: wbe, repository: 'https://charts.example.com', version: '1'}]\napiVersion: v2\n"
PATHS = [{"path": "image.tag"}, {"path": "sidecar.tag"}]


@pytest.mark.parametrize(
    ("step", "content", "after", "doubt"),
    [
        (
            ("helm-set-image", {"file": "x", "values": PATHS}),
            VALUES,
            VALUES.replace("1.0", "1.1"),
            "environments/dev/x: sidecar.tag: no key 'sidecar'",
        ),
        (
            ("replace", {"files": ["x", "y"]}),
            f"{APP}:1",
            f"{APP}:1.1",
            f"environments/dev/y: does not hold '{APP}'",
        ),
        (
            ("helm-set-chart", {"files": ["x"]}),
            CHART,
            CHART,
            "environments/dev: no file asks for chart web",
        ),
    ],
    ids=["helm", "replace", "chart"],
)
def test_verify_effect_decides_what_becomes_of_an_edit_that_lacks_its_place(
    tmp_path: Path, step: tuple[str, Mapping[str, Any]], content: str, after: str, doubt: str
) -> None:
    of = promoted_bundle(f"{APP}:1.1", charts=CHARTS if "chart" in step[0] else [])

    def made(mode: str) -> tuple[Files, Notes]:
        files = Files(tmp_path / mode, {"x": content, "y": "nothing"})
        notes = Notes()
        files.changes(step, of=of, notes=notes, update={"verifyEffect": mode})
        return files, notes

    with pytest.raises(NoEffect) as caught:
        made("fail")
    assert str(caught.value).startswith(doubt)
    files, notes = made("warn")
    assert files.read("x") == after
    assert [str(finding).startswith(doubt) for finding in notes.findings] == [True]
    files, notes = made("off")
    assert files.read("x") == after
    assert notes.findings == []


@pytest.mark.parametrize("mode", ["warn", "off"])
def test_uneditable_file_is_an_error_in_every_mode(tmp_path: Path, mode: str) -> None:
    files = Files(tmp_path, {"values.yaml": "a: [", "link": "x"})
    for step in (("helm-set-image", {}), ("helm-set-image", {"file": "no.yaml"}), ("replace", {"files": ["none"]})):
        with pytest.raises(EditError):
            files.changes(step, of=BUNDLE, update={"verifyEffect": mode})


TREE = {
    "base/a.yaml": "a",
    "base/deep/b.yaml": "b",
    "base/deep/c.txt": "c",
    "base/[x].yaml": "x",
    "one.yaml": "1",
    "/shared/s.yaml": "s",
}


@pytest.mark.parametrize(
    ("source", "to", "expected"),
    [
        ("one.yaml", "two.yaml", {"two.yaml": b"1"}),
        ("one.yaml", "dir/", {"dir/one.yaml": b"1"}),
        ("./base/deep", "out", {"out/b.yaml": b"b", "out/c.txt": b"c"}),
        ("base/*.yaml", "out", {"out/a.yaml": b"a", "out/[x].yaml": b"x"}),
        ("base/**/*.yaml", "out/", {"out/a.yaml": b"a", "out/[x].yaml": b"x", "out/deep/b.yaml": b"b"}),
        ("**/deep", "out", {"out/base/deep/b.yaml": b"b", "out/base/deep/c.txt": b"c"}),
        ("base/**", "out", {"out/a.yaml": b"a", "out/[x].yaml": b"x", "out/deep/b.yaml": b"b", "out/deep/c.txt": b"c"}),
        ("base/[?].yaml", "out", {"out/[x].yaml": b"x"}),
        ("*.yaml", "base", {"base/one.yaml": b"1"}),
    ],
)
def test_copy_takes_files_directories_and_patterns(
    tmp_path: Path, source: str, to: str, expected: dict[str, bytes]
) -> None:
    files = Files(tmp_path, TREE)
    assert files.changes(("copy", {"from": source, "to": to}), of=BUNDLE) == expected


def test_copy_takes_files_of_another_repository(tmp_path: Path) -> None:
    files = Files(tmp_path / "here", TREE)
    other = Files(tmp_path / "there", {"/charts/app/values.yaml": "v", "/charts/app/Chart.yaml": "c"})
    config = {"from": "charts/app", "to": "chart", "input": "charts"}
    changes = files.changes(("copy", config), of=BUNDLE, inputs={"charts": other.view()})
    assert changes == {"chart/Chart.yaml": b"c", "chart/values.yaml": b"v"}
    assert "charts: is not the `as` of a git-clone before this step" in refusal(files, ("copy", config))


@pytest.mark.parametrize(
    ("paths", "left"),
    [
        (["base/deep"], ["base/[x].yaml", "base/a.yaml", "one.yaml"]),
        (["**/*.yaml"], ["base/deep/c.txt"]),
        (["base/*", "nothing/*", "absent"], ["one.yaml"]),
        (["?ne.yaml", "base/**/c.*"], ["base/[x].yaml", "base/a.yaml", "base/deep/b.yaml"]),
        (["**"], []),
    ],
)
def test_delete_takes_files_directories_and_patterns(tmp_path: Path, paths: list[str], left: list[str]) -> None:
    files = Files(tmp_path, TREE)
    files.changes(("delete", {"paths": paths}), of=BUNDLE)
    expected = sorted(path for path in TREE if not path.startswith("/") and path in left)
    assert sorted(_paths(files.view(), "environments/dev")) == expected
    assert files.read("/shared/s.yaml") == "s"


def _paths(tree: Tree, directory: str, below: str = "") -> list[str]:
    found = []
    for name in tree.entries(f"{directory}/{below}".rstrip("/")):
        path = f"{below}/{name}" if below else name
        found += _paths(tree, directory, path) if tree.is_dir(f"{directory}/{path}") else [path]
    return found


def test_each_step_sees_what_those_before_have_done(tmp_path: Path) -> None:
    files = Files(tmp_path, {"template.yaml": VALUES, "old.yaml": "x"})
    files.changes(
        ("copy", {"from": "template.yaml", "to": "values.yaml"}),
        ("helm-set-image", {}),
        ("yaml-update", {"file": "values.yaml", "updates": [{"path": "replicas", "value": 2, "create": True}]}),
        ("copy", {"from": "values.yaml", "to": "out/"}),
        ("delete", {"paths": ["*l*.yaml"]}),
        of=BUNDLE,
    )
    assert _paths(files.view(), "environments/dev") == ["out/values.yaml"]
    assert files.read("out/values.yaml") == VALUES.replace("1.0", "1.1") + "replicas: 2\n"


FILE = 0o100644
LINK = 0o120000
SUBMODULE = 0o160000
EXECUTABLE = 0o100755


def with_entry(files: Files, name: str, mode: int, content: bytes) -> None:
    """Put a file of any mode into the environment's directory."""
    put(files, name, TreeEntry(mode, files.staging.add_blob(content)))


def with_tree(files: Files, name: str, tree: str) -> None:
    put(files, name, TreeEntry.directory(tree))


def put(files: Files, name: str, entry: TreeEntry) -> None:
    root = files.staging.tree(files.tree)
    environments = files.staging.tree(root["environments"].id)
    environment = files.staging.tree(environments["dev"].id)
    made = files.staging.add_tree({**environment, name: entry})
    made = files.staging.add_tree({**environments, "dev": TreeEntry.directory(made)})
    files.tree = files.staging.add_tree({**root, "environments": TreeEntry.directory(made)})


@pytest.mark.parametrize(
    "step",
    [
        ("copy", {"from": "link", "to": "x"}),
        ("copy", {"from": "link/passwd", "to": "x"}),
        ("copy", {"from": "l*", "to": "x"}),
        ("copy", {"from": "**/a.yaml", "to": "x"}),
        ("copy", {"from": "one.yaml", "to": "link/x"}),
        ("copy", {"from": "one.yaml", "to": "link"}),
        ("delete", {"paths": ["link"]}),
        ("delete", {"paths": ["link/x"]}),
        ("delete", {"paths": ["**"]}),
        ("yaml-update", {"file": "link", "updates": [{"path": "a", "value": 1}]}),
        ("helm-set-image", {"file": "link/values.yaml"}),
        ("replace", {"files": ["link"]}),
    ],
)
@pytest.mark.parametrize("link", [b"/etc", b"../../shared", b"one.yaml"])
def test_no_step_follows_or_replaces_a_link(tmp_path: Path, step: tuple[str, Mapping[str, Any]], link: bytes) -> None:
    files = Files(tmp_path, TREE)
    with_entry(files, "link", LINK, link)
    assert "link is a symbolic link" in refusal(files, step)


def test_submodules_and_modes_stay(tmp_path: Path) -> None:
    files = Files(tmp_path, TREE)
    with_entry(files, "module", SUBMODULE, b"")
    with_entry(files, "run.sh", EXECUTABLE, f"docker run {APP}:1".encode())
    files.changes(("replace", {"files": ["run.sh"]}), ("delete", {"paths": ["**/*.yaml"]}), of=BUNDLE)
    environment = files.staging.tree(files.staging.tree(files.staging.tree(files.tree)["environments"].id)["dev"].id)
    assert {name: entry.mode for name, entry in environment.items()} == {
        "base": 0o040000,
        "module": SUBMODULE,
        "run.sh": EXECUTABLE,
    }
    assert files.read("run.sh") == f"docker run {APP}:1.1"


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    files = Files(tmp_path, TREE)
    with_entry(files, "values.yaml", FILE, b"#" * ((1 << 20) + 1))
    said = "environments/dev/values.yaml: has 1,048,577 bytes; files of at most 1,048,576 are edited"
    assert said in refusal(files, ("helm-set-image", {}))
    assert said in refusal(files, ("replace", {"files": ["values.yaml"]}))


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (("copy", {"from": "many", "to": "x"}), "many: names more than 1,000 files"),
        (("delete", {"paths": ["many/*"]}), "many/*: names more than 1,000 files"),
        (("delete", {"paths": ["many/?", "many/??", "many/???", "many/?0??"]}), "more than 1,000 files to delete"),
        (("delete", {"paths": ["wide/*.yaml"]}), "wide/*.yaml: has to be compared with more than 20,000 names"),
        (("delete", {"paths": ["a"]}), "is more than 64 levels deep"),
        (("copy", {"from": "**/x", "to": "y"}), "is more than 64 levels deep"),
        (("delete", {"paths": ["/".join(["**", "a"] * 20)]}), "is more than 64 levels deep"),
    ],
)
def test_files_and_levels_are_bounded(tmp_path: Path, step: tuple[str, Mapping[str, Any]], message: str) -> None:
    files = Files(tmp_path, TREE)
    blob = files.staging.add_blob(b"")
    for name, count in (("many", 1_002), ("wide", 20_001)):
        tree = files.staging.add_tree({str(number): TreeEntry.file(blob) for number in range(count)})
        with_tree(files, name, tree)
    tree = files.staging.add_tree({"x": TreeEntry.file(blob)})
    for _ in range(300):
        tree = files.staging.add_tree({"a": TreeEntry.directory(tree)})
    with_tree(files, "a", tree)
    assert message in refusal(files, step)


def test_a_pattern_of_many_asterisks_ends(tmp_path: Path) -> None:
    files = Files(tmp_path, {"a/" * 40 + "a" * 200: "x", "kept": "x"})
    for pattern in ("/".join(["**"] * 120) + "/b", "/".join(["*a*a*"] * 40) + "/" + "*a" * 90 + "b"):
        assert files.changes(("delete", {"paths": [pattern]}), of=BUNDLE) == {}
