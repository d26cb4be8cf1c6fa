"""The programs that render in the images: pinned archives of the versions that are tested, and none that differs.

No image is built here. The commands of the stage that fetches them are run as they stand, with a `curl` that takes
archives of this test.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tarfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
DOCKERFILES = ("Dockerfile.controller", "Dockerfile.agent")
PINS = [
    line.split("  ")
    for line in (CHECKOUT / "renderers.sha256").read_text().splitlines()
    if line and not line.startswith("#")
]
MODULES = {"KUSTOMIZE": "sigs.k8s.io/kustomize/kustomize/v5", "HELM": "helm.sh/helm/v3"}
CURL = """\
#!/bin/sh
for argument; do url=$argument; done
cp "$ARCHIVES/${url##*/}" .
"""


def stage(dockerfile: str, name: str) -> str:
    """Return the instructions of a stage, `name` being that of the last one if it is empty."""
    stages = re.split(r"^(?=FROM )", (CHECKOUT / dockerfile).read_text(), flags=re.MULTILINE)[1:]
    wanted = [text for text in stages if text.partition("\n")[0].endswith(f" AS {name}")] if name else stages[-1:]
    (found,) = wanted
    return found


def versions(dockerfile: str) -> dict[str, str]:
    return dict(re.findall(r"^ARG (\w+)=(\S+)$", stage(dockerfile, "renderers"), re.MULTILINE))


def commands(dockerfile: str) -> str:
    """Return the shell command that fetches the programs."""
    text = stage(dockerfile, "renderers").replace("\\\n", " ")
    (found,) = [line.removeprefix("RUN ") for line in text.splitlines() if line.startswith("RUN ") and "$url" in line]
    return found.replace("chown root:root", "true")


def test_both_images_have_the_programs_and_run_without_rights() -> None:
    assert len({stage(dockerfile, "renderers").partition("\n#")[0].strip() for dockerfile in DOCKERFILES}) == 1
    for dockerfile in DOCKERFILES:
        lines = stage(dockerfile, "").splitlines()
        copied = lines.index("COPY --from=renderers /renderers/kustomize /renderers/helm /usr/local/bin/")
        assert lines.index("USER 65534:65534") > copied
        assert "renderers.sha256" in (CHECKOUT / ".dockerignore").read_text()


def test_the_image_of_supply_chains_has_ytt_as_it_is_tested() -> None:
    built = stage("Dockerfile.supplychain", "ytt")
    assert "COPY hack/renderers/go.mod hack/renderers/go.sum ./" in built
    assert "go build -trimpath" in built
    assert built.rstrip().endswith("-o /ytt carvel.dev/ytt/cmd/ytt")
    copied = stage("Dockerfile.supplychain", "").splitlines()
    assert copied.index("COPY --from=ytt /ytt /usr/local/bin/") < copied.index("USER 65534:65534")
    for name in ("go.mod", "go.sum"):
        assert f"!hack/renderers/{name}" in (CHECKOUT / ".dockerignore").read_text().splitlines()


def test_their_versions_are_those_that_are_tested() -> None:
    required = (CHECKOUT / "hack/renderers/go.mod").read_text()
    for dockerfile in DOCKERFILES:
        assert {name: f"v{version}" for name, version in versions(dockerfile).items()} == {
            name: re.findall(rf"^\t{re.escape(module)} (\S+)", required, re.MULTILINE)[0]
            for name, module in MODULES.items()
        }


def test_every_archive_of_both_architectures_is_pinned() -> None:
    pinned = versions(DOCKERFILES[0])
    names = [f"kustomize_v{pinned['KUSTOMIZE']}_linux_{arch}.tar.gz" for arch in ("amd64", "arm64")]
    names += [f"helm-v{pinned['HELM']}-linux-{arch}.tar.gz" for arch in ("amd64", "arm64")]
    assert [name for _, name in PINS] == names
    assert len({digest for digest, _ in PINS if re.fullmatch(r"[0-9a-f]{64}", digest)}) == len(PINS)


class Build:
    """A directory in which the stage runs, with archives to fetch."""

    def __init__(self, directory: Path, dockerfile: str) -> None:
        self._dockerfile = dockerfile
        self._environment = {**versions(dockerfile), "ARCHIVES": str(directory / "archives")}
        self._environment["PATH"] = f"{directory / 'bin'}:{os.environ['PATH']}"
        self.made = directory / "renderers"
        self.archives = directory / "archives"
        for path in (self.made, self.archives, directory / "bin"):
            path.mkdir()
        for program, script in (("curl", CURL), ("dpkg", "#!/bin/sh\necho arm64\n")):
            (directory / "bin" / program).write_text(script)
            (directory / "bin" / program).chmod(0o755)
        self._pack(f"kustomize_v{self._environment['KUSTOMIZE']}_linux_arm64.tar.gz", "kustomize")
        self._pack(f"helm-v{self._environment['HELM']}-linux-arm64.tar.gz", "linux-arm64/helm")
        self.pin()

    def pin(self) -> None:
        """Write the checksums of the archives as they are now."""
        lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in self.archives.iterdir()]
        (self.made / "renderers.sha256").write_text("# Archives.\n" + "\n".join(lines) + "\n")

    def run(self) -> int:
        command = ["sh", "-c", commands(self._dockerfile)]
        done = subprocess.run(
            command, cwd=self.made, env=self._environment, capture_output=True, timeout=20, check=False
        )
        return done.returncode

    def _pack(self, name: str, member: str) -> None:
        source = self.archives / "program"
        source.write_text(f"#!/bin/sh\necho {member}\n")
        with tarfile.open(self.archives / name, "w:gz") as archive:
            archive.add(source, member)
        source.unlink()


@pytest.mark.parametrize("dockerfile", DOCKERFILES)
def test_the_programs_come_out_of_the_pinned_archives(tmp_path: Path, dockerfile: str) -> None:
    build = Build(tmp_path, dockerfile)
    assert build.run() == 0
    for program, says in (("kustomize", "kustomize"), ("helm", "linux-arm64/helm")):
        done = subprocess.run([build.made / program], capture_output=True, text=True, timeout=20, check=True)
        assert done.stdout.strip() == says


@pytest.mark.parametrize("which", ["kustomize", "helm"])
def test_an_archive_that_differs_or_is_not_pinned_ends_the_build(tmp_path: Path, which: str) -> None:
    build = Build(tmp_path, DOCKERFILES[0])
    pins = build.made / "renderers.sha256"
    (archive,) = build.archives.glob(f"{which}*")
    archive.write_bytes(archive.read_bytes() + b"\0")
    assert build.run() != 0
    assert not (build.made / which).exists()
    pins.write_text("\n".join(line for line in pins.read_text().splitlines() if which not in line) + "\n")
    assert build.run() != 0
    assert not (build.made / which).exists()
