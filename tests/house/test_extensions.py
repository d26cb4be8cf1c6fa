"""Packages of others add steps, providers and health adapters by entry points."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from kardinal.extensions import ExtensionError, load_extensions
from kardinal.promotion.api.health_adapters import BUILTIN_ADAPTERS, RESOURCE

ROOT = Path(__file__).parents[2]

MODULE = """
from kardinal.promotion.steps.declaration import StepDeclaration
NOTIFY = StepDeclaration(name="notify", effect=object)
"""


def install(directory: Path, entry: str, *, group: str = "kardinal.steps", module: str = MODULE) -> None:
    (directory / "acme_extension.py").write_text(module)
    information = directory / "acme_extension-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-extension\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "acme_extension", raising=False)
    return tmp_path


def test_a_step_of_another_package_is_known_by_its_name(packages: Path) -> None:
    install(packages, "notify = acme_extension:NOTIFY")
    extensions = load_extensions()
    assert extensions.steps["notify"].effect is object
    assert "notify" in extensions.registry.steps


def test_a_provider_of_metrics_of_another_package_is_known_by_its_name(packages: Path) -> None:
    module = (
        "from kardinal.promotion.metrics.provider import MetricProvider, MetricRequest, Samples\n"
        "GRAPHITE = MetricProvider('graphite', asked=lambda query: MetricRequest(path='/render'),\n"
        "    read=lambda status, body: Samples((), single=True))\n"
    )
    install(packages, "graphite = acme_extension:GRAPHITE", group="kardinal.metrics", module=module)
    assert set(load_extensions().metrics) == {"prometheus", "graphite"}


@pytest.mark.parametrize(
    ("entry", "group", "module", "says"),
    [
        ("notify = acme_extension:ABSENT", "kardinal.steps", MODULE, "cannot be loaded"),
        (
            "notify = acme_extension:NOTIFY",
            "kardinal.steps",
            "raise OSError('broken')",
            "cannot be loaded: broken",
        ),
        ("other = acme_extension:NOTIFY", "kardinal.steps", MODULE, "is no StepDeclaration named other"),
        ("notify = acme_extension:NOTIFY", "kardinal.providers", MODULE, "is no Provider named notify"),
        (
            "git-push = acme_extension:NOTIFY",
            "kardinal.steps",
            MODULE.replace('"notify"', '"git-push"'),
            "takes a name that is taken",
        ),
    ],
)
def test_a_package_that_cannot_be_used_keeps_the_program_from_starting(
    packages: Path, entry: str, group: str, module: str, says: str
) -> None:
    install(packages, entry, group=group, module=module)
    with pytest.raises(ExtensionError, match=says) as caught:
        load_extensions()
    assert "in package acme-extension" in str(caught.value)


def test_a_health_adapter_is_spelled_in_its_declaration_alone() -> None:
    names = set(BUILTIN_ADAPTERS) - {RESOURCE.name}
    # Few modules are parsed: in the others no such text stands.
    spelled = re.compile("|".join(map(re.escape, names)), re.IGNORECASE)
    found = {
        str(path.relative_to(ROOT))
        for package in ("kardinal", "kardinal_agent", "kardinal_controller")
        for path in (ROOT / package).rglob("*.py")
        if spelled.search(source := path.read_text())
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and node.value in names
    }
    assert found == {"kardinal/promotion/api/health_adapters.py"}
