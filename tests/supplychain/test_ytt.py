"""Templates of ytt: what they read, what becomes of what they make, and whose turn it is."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kardinal.processes.threads import BlockingCallOnLoop
from kardinal_supplychain.realize.context import InputValues, SourceValue, template_context
from kardinal_supplychain.realize.stamp import StampError
from kardinal_supplychain.ytt import INSTALL_YTT, YTT_VERSION, Ytt
from tests.supplychain.conftest import StartYtt
from tests.support.renderers import program

ROOT = Path(__file__).parents[2]
OWNER: dict[str, Any] = {
    "apiVersion": "carto.run/v1alpha1",
    "kind": "Workload",
    "metadata": {"name": "web", "namespace": "team", "uid": "u1", "labels": {"type": "web"}},
    "spec": {"source": {"git": {"url": "https://git.example.com/a"}}, "env": [{"name": "A", "value": "1"}]},
}
ANSWER = """echo '{"a": 1}'"""
LOAD = '#@ load("@ytt:data", "data")\n'


@pytest.fixture
def ytt(real_ytt: Path, start_ytt: StartYtt) -> Ytt:
    return start_ytt(real_ytt)


async def made(ytt: Ytt, template: str, **params: Any) -> Any:
    return await ytt.render(LOAD + template, {"params": params}, namespace="team")


async def refused(ytt: Ytt, template: str, **params: Any) -> StampError:
    with pytest.raises(StampError) as failed:
        await made(ytt, template, **params)
    return failed.value


async def test_template_reads_owner_params_and_inputs(ytt: Ytt) -> None:
    inputs = InputValues(
        sources={"src": SourceValue("https://x/a.tgz", "main@sha1:1")},
        images={"base": "r/base@sha256:1"},
        configs={"conf": {"port": 8080}},
        deployment=SourceValue("https://x/d.tgz", "2"),
    )
    context = template_context(OWNER, params={"replicas": 3}, inputs=inputs, labels={"carto.run/resource-name": "r"})
    template = """\
#@ load("@ytt:data", "data")
#@ def labels():
app: #@ data.values.workload.metadata.name
#@ end
---
kind: Deployment
metadata:
  name: #@ data.values.workload.metadata.name
  labels: #@ labels()
spec:
  replicas: #@ data.values.params.replicas
  #@ if hasattr(data.values.workload.spec, "env"):
  env: #@ data.values.workload.spec.env
  #@ end
  #@ if hasattr(data.values.workload.spec, "image"):
  own: #@ data.values.workload.spec.image
  #@ end
  values:
    - #@ data.values.sources.src.url
    - #@ data.values.source.revision
    - #@ data.values.images.base.image
    - #@ data.values.image
    - #@ data.values.configs.conf.config.port
    - #@ data.values.config.port
    - #@ data.values.deployment.revision
    - #@ data.values.deliverable.metadata.namespace
    - #@ data.values.labels["carto.run/resource-name"]
"""
    assert await ytt.render(template, context, namespace="team") == {
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "replicas": 3,
            "env": [{"name": "A", "value": "1"}],
            "values": [
                "https://x/a.tgz",
                "main@sha1:1",
                "r/base@sha256:1",
                "r/base@sha256:1",
                8080,
                8080,
                "2",
                "team",
                "r",
            ],
        },
    }


VALUES = {
    "largest": 2**63 - 1,
    "smallest": -(2**63),
    "beyond a double": 2**53 + 1,
    "unsigned": 2**64 - 1,
    "float": 1.5,
    "large float": 1e300,
    "small float": 5e-324,
    "words": ["yes", "no", "on", "null", "~", "1e3", "1:30", "0x10", "007", "2001-01-01", "<<", "=", ""],
    "nothing": None,
    "truth": [True, False],
    "empty": [{}, []],
    "lines": "a\n  b\n\n---\n#@ fail('x')\n\t\r\n",
    "quotes": "\"'\\ $(params.x)$ (@= 1 @)",
    "binary": "".join(map(chr, range(256))),
    "wide": "é \x85\u2028\u2029\ufeff\ufffe\uffff 漢 😀",
    "<<": {"not": "merged"},
    "é 😀\n": "key",
    "long": "x" * 100_000,
}


async def test_values_pass_unchanged(ytt: Ytt) -> None:
    """YAML has other escapes, line ends and numbers than JSON, and ytt reads values as YAML."""
    given = await made(ytt, "values: #@ data.values.params", **VALUES)
    assert given == {"values": VALUES}
    assert {name: type(value) for name, value in given["values"].items()} == {
        name: type(value) for name, value in VALUES.items()
    }


async def test_number_of_the_template_is_a_number(ytt: Ytt) -> None:
    """PyYAML reads what ytt writes for these as text."""
    assert await made(ytt, "a: 1e3\nb: #@ 1e21\nc: #@ 1000000.0\nd: 9223372036854775807") == {
        "a": 1000.0,
        "b": 1e21,
        "c": 1_000_000,
        "d": 2**63 - 1,
    }


@pytest.mark.parametrize(
    ("template", "document"),
    [
        ("a: 1\n---\nb: 2\n", {"a": 1}),
        ("---\n---\na: 1\n---\n- 2\n", {"a": 1}),
        ("#@ if/end False:\n---\na: 1\n#@ if/end True:\n---\nb: 2\n", {"b": 2}),
        ("#! a comment\na: !!binary aGk=\n", {"a": "hi"}),
    ],
)
async def test_first_document_counts(ytt: Ytt, template: str, document: Any) -> None:
    assert await made(ytt, template) == document


async def test_keys_that_are_not_texts_become_texts(ytt: Ytt) -> None:
    """Cartographer reads YAML, where the key `yes` is a boolean, which becomes the text `true`."""
    template = (
        "yes: me\n1: {2.5: [x, '7', 7]}\n"
        "data: {a: 'yes', b: '1e3', c: 1e+21, d: 12345678901234567, e: null, f: 'null', g: false, h: '012', i: '<<'}\n"
        "when: '2026-01-01'\n"
    )
    assert await made(ytt, template) == {
        "true": "me",
        "1": {"2.5": ["x", "7", 7]},
        "data": {
            **{"a": "yes", "b": "1e3", "c": 1e21, "d": 12345678901234567, "e": None},
            **{"f": "null", "g": False, "h": "012", "i": "<<"},
        },
        "when": "2026-01-01",
    }


async def test_depth_is_bounded_with_keys_that_are_not_texts(ytt: Ytt) -> None:
    error = await refused(ytt, "1: " + "[" * 100 + "]" * 100 + "\n")
    assert "nested deeper than 64 levels" in str(error)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("", "no document"),
        ("---\n", "no document"),
        ("#@ if/end False:\n---\na: 1\n", "no document"),
        ("- a\n", "a list"),
        ("just text\n", "one value"),
        ("--- 3\n", "one value"),
        ("1: a\nb: #@ 'x' * 70000\n", "a key that is not a text"),
        ("a: [\n", "stdin.yml"),
        ("a: b: c\n", "stdin.yml"),
        ("a: \x01\n", "control characters"),
        ("#@ fail('no image today')\n", "no image today"),
        ("a: #@ data.values.workload.metadata.name\n", "workload"),
        ("a: #@ data.values.params.absent\n", "absent"),
        ("a: #@ 1 << 100\n", "not sure how to get int"),
    ],
)
async def test_template_without_an_object_is_refused(ytt: Ytt, template: str, said: str) -> None:
    error = await refused(ytt, template)
    assert str(error).startswith("unable to apply ytt template: ")
    assert said in str(error)
    assert not error.transient


async def test_refusal_is_the_same_each_time(ytt: Ytt) -> None:
    """A message with the name of a temporary file would be a new status for each attempt."""
    for template in ("a: #@ data.values.params.absent", "a: #@ 1 << 100", "a: ["):
        told = {str(await refused(ytt, template)) for _ in range(2)}
        assert len(told) == 1
        assert "/" not in told.pop()


async def test_text_of_a_refusal_is_bounded(tmp_path: Path, start_ytt: StartYtt) -> None:
    script = "/usr/bin/printf '\\033[31mred\\n' >&2; /usr/bin/head -c 5000 /dev/zero | /usr/bin/tr '\\0' x >&2; exit 1"
    error = await refused(start_ytt(program(tmp_path, "ytt", script)), "a: 1")
    assert "\\x1b[31mred\nxxx" in str(error)
    assert len(str(error)) < 1_100


async def test_values_that_no_server_stores_are_refused(ytt: Ytt) -> None:
    assert "values are not JSON" in str(await refused(ytt, "a: 1", x=2**64))
    assert "5,0" in str(await refused(ytt, "a: 1", x="x" * 5_000_000))


async def test_missing_program_is_told_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, start_ytt: StartYtt
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert str(await refused(start_ytt(), "a: 1")) == f"ytt is not installed: it is not on PATH. {INSTALL_YTT}"
    assert str(tmp_path / "ytt") in str(await refused(start_ytt(tmp_path / "ytt"), "a: 1"))
    program(tmp_path, "ytt", """echo '{"found": true}'""")
    assert await made(start_ytt(), "a: 1") == {"found": True}


def test_version_that_is_installed_is_the_one_that_is_tested() -> None:
    assert f"\tcarvel.dev/ytt {YTT_VERSION} " in (ROOT / "hack/renderers/go.mod").read_text()
    assert f"cmd/ytt@{YTT_VERSION}" in INSTALL_YTT


async def test_rendering_blocks_no_event_loop(start_ytt: StartYtt) -> None:
    with pytest.raises(BlockingCallOnLoop):
        start_ytt().rendered("a: 1", {})


async def order_of(ytt: Ytt, *namespaces: str) -> list[str]:
    """Return in which order renderings of these namespaces end that are asked for at once."""
    order: list[str] = []

    async def rendered(namespace: str) -> None:
        await ytt.render("a: 1", {}, namespace=namespace)
        order.append(namespace)

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        for namespace in namespaces:
            group.create_task(rendered(namespace))
    return order


async def test_namespaces_take_turns(tmp_path: Path, start_ytt: StartYtt) -> None:
    ytt = start_ytt(program(tmp_path, "ytt", ANSWER), memory=128 << 20)
    assert await order_of(ytt, "a", "a", "a", "a", "b", "c", "b") == ["a", "a", "b", "c", "a", "b", "a"]


async def test_cancelled_rendering_changes_no_turn(tmp_path: Path, start_ytt: StartYtt) -> None:
    ytt = start_ytt(program(tmp_path, "ytt", ANSWER), memory=128 << 20)
    tasks = [asyncio.create_task(ytt.render("a: 1", {}, namespace=f"n{number % 3}")) for number in range(9)]
    await asyncio.sleep(0)
    for task in tasks[:8:2]:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(result, asyncio.CancelledError) for result in results] == [
        number % 2 == 0 and number < 8 for number in range(9)
    ]
    assert await order_of(ytt, "a", "a", "a", "a", "b") == ["a", "a", "b", "a", "a"]


async def test_values_are_in_no_argument_and_in_a_file_of_this_user(tmp_path: Path, start_ytt: StartYtt) -> None:
    script = """/usr/bin/printf '{"arguments": "%s", "mode": "%s", "names": "%s"}' \
"$*" "$(/usr/bin/stat -c %a values.yml)" "$(/bin/ls | /usr/bin/tr '\\n' ' ')" """
    ytt = start_ytt(program(tmp_path, "ytt", script))
    seen = await made(ytt, "a: 1", password="hidden")
    assert seen["arguments"] == "-f - --data-values-file values.yml --output json"
    assert seen["mode"] == "600"
    assert re.fullmatch(r"output template\.yml values\.yml ", seen["names"])


def waiting_launchers() -> list[int]:
    """Return the launchers that this process has started and that wait for a template."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            waits = b"confined.py\0--plan=" in path.read_bytes() and b"/bin/sh" not in path.read_bytes()
            if waits and _grandparent(path.parent) == os.getpid():
                found.append(int(path.parent.name))
    return found


def _grandparent(process: Path) -> int:
    parent = _parent(process)
    return _parent(Path(f"/proc/{parent}"))


def _parent(process: Path) -> int:
    return int((process / "stat").read_text().rpartition(")")[2].split()[1])


async def until_one_waits() -> int:
    async with asyncio.timeout(20):
        while not (found := waiting_launchers()):
            await asyncio.sleep(0.01)
    [one] = found
    return one


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
async def test_one_launcher_waits_for_the_next_template_and_no_longer_than_the_renderer(
    tmp_path: Path, start_ytt: StartYtt
) -> None:
    ytt = start_ytt(program(tmp_path, "ytt", ANSWER))
    assert waiting_launchers() == []
    assert await asyncio.gather(*(made(ytt, "a: 1") for _ in range(3))) == [{"a": 1}] * 3
    first = await until_one_waits()
    assert await made(ytt, "a: 1") == {"a": 1}
    second = await until_one_waits()
    assert second != first
    await ytt.stop()
    assert waiting_launchers() == []


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
async def test_launcher_that_is_killed_while_it_waits_costs_no_template(tmp_path: Path, start_ytt: StartYtt) -> None:
    ytt = start_ytt(program(tmp_path, "ytt", ANSWER))
    await made(ytt, "a: 1")
    killed = await until_one_waits()
    os.kill(killed, signal.SIGKILL)
    async with asyncio.timeout(20):
        while killed in waiting_launchers():
            await asyncio.sleep(0.01)
    assert await made(ytt, "a: 1") == {"a": 1}
