"""Stand in for Tekton: run `make test` on the source of each TestRun, once.

    python -m hack.standins.runner --kubeconfig FILE --namespace NAMESPACE

`spec.source.url` is the archive of the source. `spec.behaviour` makes it worse than it is: `fail` says that the test
failed, `hang` never ends, `silent` never reports. Status is as Tekton has it: the condition Succeeded.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from datetime import timedelta
from pathlib import Path

import click

from hack.standins.archives import ArchiveError, fetch_archive, files_of
from hack.standins.program import options, run_standin, with_condition
from kardinal.objects import JsonObject
from kardinal.objects.conditions import find_condition
from kardinal.runtime.process import run

__all__ = ["Runner"]

TEST_SECONDS = 60.0
_SHOWN = 500


class Runner:
    """Runs the tests of sources, with the rights of this process."""

    async def status_of(self, obj: JsonObject) -> tuple[JsonObject, timedelta | None]:
        """Return the status with the result; while it runs, Succeeded is Unknown."""
        status: JsonObject = obj.get("status") or {}
        reported = find_condition(status, "Succeeded")
        behaviour = obj["spec"].get("behaviour") or "run"
        if behaviour == "silent" or (reported is not None and reported["status"] != "Unknown"):
            return status, None
        if reported is None:
            # Its own event wakes it again, and then it runs.
            return with_condition(obj, "Succeeded", "Unknown", "Running"), None
        if behaviour == "hang":
            return status, None
        if behaviour == "fail":
            return with_condition(obj, "Succeeded", "False", "Failed", "told to fail"), None
        try:
            succeeded, said = await _tested(await fetch_archive(obj["spec"]["source"]["url"]))
        except (ArchiveError, KeyError, TypeError) as error:
            return with_condition(obj, "Succeeded", "False", "SourceFailed", str(error)), None
        if succeeded:
            return with_condition(obj, "Succeeded", "True", "Succeeded", said), None
        return with_condition(obj, "Succeeded", "False", "Failed", said), None


async def _tested(archive: bytes) -> tuple[bool, str]:
    """Return whether `make test` succeeds on the files of an archive, and the end of its output."""
    with tempfile.TemporaryDirectory(prefix="kardinal-standin-") as name:
        await asyncio.to_thread(_unpack, archive, Path(name))
        process = await asyncio.create_subprocess_exec(
            *("make", "test"),
            cwd=name,
            env={"PATH": os.environ["PATH"], "HOME": name},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = await asyncio.wait_for(process.communicate(), TEST_SECONDS)
        except TimeoutError:
            return False, f"make test takes more than {TEST_SECONDS:.0f} s"
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
    return process.returncode == 0, output.decode(errors="replace").strip()[-_SHOWN:]


def _unpack(archive: bytes, directory: Path) -> None:
    for path, executable, content in files_of(archive):
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(0o755 if executable else 0o644)


async def _start() -> Runner:
    return Runner()


@click.command()
@options
def main(*, kubeconfig: Path, namespace: str) -> None:
    """Stand in for Tekton."""
    run(run_standin("runner", kubeconfig, namespace, _start))


if __name__ == "__main__":
    main()
