"""The commands of the README and of the installation page work as they are written, one after the other."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.kubectl import Kubectl, kubectl_versions
from tests.support.server import ApiServer

ROOT = Path(__file__).parents[2]
NEWEST = list(kubectl_versions() or ["none found"])[-1]
PAGES = {"README": ("README.md", "In a cluster"), "installation": ("docs/installation.md", None)}


def commands(page: str, section: str | None) -> list[list[str]]:
    """Return the calls of kubectl in the blocks of a page, or of one section of it, without their comments."""
    text = (ROOT / page).read_text()
    if section is not None:
        text = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [shlex.split(line, comments=True) for line in lines]


def files_of(words: list[str]) -> list[str]:
    return [words[number + 1] for number, word in enumerate(words) if word == "-f"]


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("kubectl", [NEWEST], indirect=True)
async def test_the_commands_work(
    api_server: ApiServer,
    kubectl: Callable[[Path], Kubectl],
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("crds", "deploy"):
        (tmp_path / name).symlink_to(ROOT / name)
    # Of the control plane, in a cluster that is both here.
    (tmp_path / "hub.kubeconfig").write_text("apiVersion: v1\nkind: Config\n")
    run = kubectl(api_server.kubeconfig)
    written = commands(*PAGES[page])

    assert {words[0] for words in written} == {"kubectl"}
    for words in written:
        out = await run(*words[1:])
        if words[1:3] == ["auth", "can-i"]:
            assert out.strip() == "yes", words


def test_the_page_applies_every_manifest() -> None:
    """But those that are an alternative to another one, or a right that a guide offers."""
    named = [Path(path) for words in commands(*PAGES["installation"]) for path in files_of(words)]
    applied = {
        found for path in named for found in ((ROOT / path).glob("*.yaml") if (ROOT / path).is_dir() else [ROOT / path])
    }
    shipped = {path for folder in ("crds", "deploy") for path in (ROOT / folder).rglob("*.yaml")}
    assert {str(path.relative_to(ROOT)) for path in shipped - applied} == {
        "deploy/secrets/every-namespace.yaml",
        "deploy/agent/secrets/every-namespace.yaml",
        "deploy/tools/refresh/namespace.yaml",
        "deploy/holidays/namespace.yaml",
        "deploy/supplychain/cluster-wide/accounts.yaml",
        "deploy/supplychain/cluster-wide/kinds.yaml",
    }


def test_alternatives_of_the_page_exist() -> None:
    text = (ROOT / "docs" / "installation.md").read_text()
    paths = set(re.findall(r"`((?:deploy|crds)/[^` ]*)`", text))
    assert {path for path in paths if not (ROOT / path).exists()} == set()
    assert len(paths) > 5
