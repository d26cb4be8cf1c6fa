"""Versions of charts are set wherever manifests ask for them, and a lock stays true."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kardinal.edits.helm.chart_lock import relocked
from kardinal.edits.helm.chart_versions import PromotedChart
from kardinal.edits.yaml.document_walk import DocumentError
from kardinal.promotion.api import Bundle
from kardinal.tree.edit import EditError
from tests.support.trees import Files, promoted_bundle

REPOSITORY = "https://charts.example.com/stable"
CHART = {"repository": REPOSITORY, "name": "web", "version": "1.1.0"}
DIGEST = "sha256:" + "ab" * 32

DEPENDENCIES = f"""\
apiVersion: v2
name: app
version: 0.1.0
dependencies: # of all
- {{name: web, repository: {REPOSITORY}/, version: "1.0.0"}}
- {{name: web, repository: file://../web, version: 1.0.0}}
- {{name: web, repository: https://other.example.com, version: 1.0.0}}
- {{name: web, repository: "@stable", version: 1.0.0, alias: second}}
"""
RELEASE = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
spec:
  chart:
    spec:
      chart: web
      version: 1.x
      sourceRef: {kind: HelmRepository, name: stable}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
spec: {chart: {spec: {chart: web, version: 1.x, sourceRef: {kind: GitRepository, name: x}}}}
"""
APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
spec:
  sources:
  - {repoURL: https://charts.example.com/stable, chart: web, targetRevision: 1.0.0}
  - {repoURL: https://git.example.com/x.git, path: web, targetRevision: main}
"""
SETS = """\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
spec: {template: {spec: {source: {repoURL: charts.example.com/stable, chart: web, targetRevision: 1.0.0}}}}
"""
OCI = """\
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
spec: {url: oci://ghcr.io/acme/charts/web, ref: {tag: 1.0.0, digest: "sha256:00"}}
"""


def bundle(**chart: Any) -> Bundle:
    return promoted_bundle("ghcr.io/acme/app:1", charts=[CHART | chart])


def refusal(tree: Files, of: Bundle, **config: Any) -> str:
    with pytest.raises(EditError) as caught:
        tree.changes(("helm-set-chart", config), of=of)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        (
            "Chart.yaml",
            DEPENDENCIES,
            DEPENDENCIES.replace('"1.0.0"', '"1.1.0"').replace("1.0.0, alias", "1.1.0, alias"),
        ),
        ("deep/release.yml", RELEASE, RELEASE.replace("1.x\n", "1.1.0\n")),
        ("app.yaml", APPLICATION, APPLICATION.replace("1.0.0", "1.1.0")),
        ("set.yaml", SETS, SETS.replace("1.0.0", "1.1.0")),
    ],
)
def test_the_version_is_set_where_the_chart_is_asked_for(tmp_path: Path, name: str, before: str, after: str) -> None:
    files = Files(tmp_path, {name: before, "templates/x.yaml": "{{ if }}", "values.yaml": "web: 1.0.0"})
    assert files.changes(("helm-set-chart", {}), of=bundle()) == {name: after.encode()}
    assert files.changes(("helm-set-chart", {"files": [name]}), of=bundle()) == {name: after.encode()}


def test_a_digest_is_set_where_one_stands(tmp_path: Path) -> None:
    files = Files(tmp_path, {"a.yaml": OCI})
    of = bundle(repository="oci://ghcr.io/acme/charts", digest=DIGEST)
    files.changes(("helm-set-chart", {}), of=of)
    assert files.read("a.yaml") == OCI.replace("1.0.0", "1.1.0").replace("sha256:00", DIGEST)


def test_a_chart_that_nothing_asks_for_is_refused_with_the_nearest_ones(tmp_path: Path) -> None:
    files = Files(tmp_path, {"app.yaml": APPLICATION, "bad.yaml": "a: ["})
    message = refusal(files, bundle(name="wbe"))
    assert message == (f"environments/dev: no file asks for chart wbe of {REPOSITORY}, but web 1.0.0 of {REPOSITORY}")
    assert "no chart at all" in refusal(Files(tmp_path / "2", {"x.yaml": "a: 1"}), bundle())
    assert "environments/dev/bad.yaml: invalid YAML" in refusal(files, bundle(), files=["*.yaml"])
    assert files.changes(("helm-set-chart", {}), of=promoted_bundle("ghcr.io/acme/app:1")) == {}


def test_a_chart_that_is_kept_in_the_repository_is_not_left_behind(tmp_path: Path) -> None:
    for kept in ("web-1.0.0.tgz", "web/Chart.yaml"):
        files = Files(
            tmp_path / kept, {"c/Chart.yaml": DEPENDENCIES, f"c/charts/{kept}": "x", "c/charts/web2.tgz": "x"}
        )
        assert "holds chart web itself, and its new version is not downloaded" in refusal(files, bundle())


CHART_FILE = b"""\
apiVersion: v2
name: app
version: 0.1.0
dependencies:
- name: lib
  version: ">=1.0.0 <2"
  repository: file://../lib
  condition: lib.enabled
  tags: [a, b&c]
  alias: l
  import-values: [{parent: p, child: c}, data]
- name: red
  repository: file://../red
  version: 1.0.0
"""
LOCK = b"""\
dependencies:
- name: lib
  repository: file://../lib
  version: 1.0.0
- name: red
  repository: file://../red
  version: 1.0.0
digest: sha256:1511b5ecefa061014ac4d98035cb29d9e38f330fc3430ad737e75388bb5a3a45
generated: "2026-01-01T00:00:00Z"
"""
"""Written by `helm dependency update` 3.22."""
RED = PromotedChart("red", "file://../red", "1.1.0")


def test_a_lock_is_the_one_that_helm_makes(tmp_path: Path) -> None:
    after = CHART_FILE.replace(b"version: 1.0.0\n", b"version: 1.1.0\n")
    lock = relocked(LOCK, before=CHART_FILE, after=after, charts=[RED])
    assert lock.splitlines()[:6] == LOCK.splitlines()[:6]
    assert lock.splitlines()[6:8] == [
        b"  version: 1.1.0",
        b"digest: sha256:4b4354c30a913a7259569318d850a9fc73352b66fb399e03ac0df20b7fa1ad15",
    ]
    helm = shutil.which("helm")
    if helm is not None:
        for name, version in (("lib", "1.0.0"), ("red", "1.1.0")):
            (tmp_path / name).mkdir()
            (tmp_path / name / "Chart.yaml").write_text(f"apiVersion: v2\nname: {name}\nversion: {version}\n")
        (tmp_path / "app").mkdir()
        (tmp_path / "app/Chart.yaml").write_bytes(after)
        (tmp_path / "app/Chart.lock").write_bytes(lock)
        subprocess.run([helm, "dependency", "build", str(tmp_path / "app")], check=True, timeout=30)


@pytest.mark.parametrize("lock", [LOCK.replace(b"1511", b"0000"), b"", b"a: [", b"x", LOCK.replace(b"1.0.0", b"2.0.0")])
def test_a_lock_that_is_not_understood_is_refused(lock: bytes) -> None:
    with pytest.raises(DocumentError):
        relocked(lock, before=CHART_FILE, after=CHART_FILE, charts=[RED])


def test_aliases_of_aliases_are_not_written_out() -> None:
    chain = "".join(f"- &a{n} [{f'*a{n - 1}, *a{n - 1}' if n else 'x'}]\n" for n in range(60))
    chart = f"chain:\n{chain}dependencies:\n- {{name: red, version: 1.0.0, import-values: *a59}}\n".encode()
    with pytest.raises(DocumentError, match="repeats values by aliases"):
        relocked(LOCK, before=chart, after=chart, charts=[RED])


def test_the_lock_beside_a_chart_changes_with_it(tmp_path: Path) -> None:
    def digest(version: str) -> str:
        entry = f'{{"name":"web","version":"{version}","repository":"{REPOSITORY}"}}'
        return hashlib.sha256(f"[[{entry}],[{entry}]]".encode()).hexdigest()

    text = f"apiVersion: v2\nname: app\ndependencies:\n- {{name: web, repository: {REPOSITORY}, version: 1.0.0}}\n"
    entry = f"dependencies:\n- name: web\n  repository: {REPOSITORY}\n  version: 1.0.0\n"
    files = Files(tmp_path, {"Chart.yaml": text, "Chart.lock": f"{entry}digest: sha256:{digest('1.0.0')}\n"})
    files.changes(("helm-set-chart", {}), of=bundle())
    assert files.read("Chart.yaml") == text.replace("1.0.0", "1.1.0")
    expected = f"{entry.replace('1.0.0', '1.1.0')}digest: sha256:{digest('1.1.0')}\n"
    assert files.read("Chart.lock") == expected


def test_a_chart_whose_lock_is_stale_is_refused(tmp_path: Path) -> None:
    files = Files(tmp_path, {"Chart.yaml": DEPENDENCIES, "Chart.lock": LOCK})
    assert "environments/dev/Chart.lock: does not fit Chart.yaml as it is" in refusal(files, bundle())
    assert files.read("Chart.yaml") == DEPENDENCIES
