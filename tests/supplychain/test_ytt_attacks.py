"""Hostile templates of ytt read no file, open no connection, and end."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from kardinal.processes.isolation import find_walls
from kardinal_supplychain.realize.stamp import StampError
from kardinal_supplychain.ytt import Ytt
from tests.supplychain.conftest import StartYtt
from tests.support.renderers import listening, program, running

SMALL = 256 << 20
"""Bytes of a container of which a child gets 64 MiB."""


@pytest.fixture
def ytt(real_ytt: Path, start_ytt: StartYtt) -> Ytt:
    return start_ytt(real_ytt, memory=SMALL)


async def refused(ytt: Ytt, template: str, values: dict[str, object] | None = None) -> StampError:
    with pytest.raises(StampError) as failed:
        await ytt.render(template, values or {}, namespace="team")
    return failed.value


def growing(start: str, step: str) -> str:
    """Return a template with a value that grows 40 times."""
    lines = ["def f():", f"  x = {start}", "  for i in range(40):", f"    x = {step}", "  end", "  return x", "end"]
    return "".join(f"#@ {line}\n" for line in lines) + "a: #@ len(str(f()))\n"


BOMBS = {
    "list": growing("[0]", "x + x"),
    "text": growing("'x'", "x + x"),
    "number": growing("3", "x * x"),
    "values of itself": '#@ load("@ytt:data", "data")\na: #@ [data.values] * (1 << 24)\n',
}


@pytest.mark.parametrize("name", BOMBS)
async def test_bomb_is_stopped(ytt: Ytt, name: str) -> None:
    error = await refused(ytt, BOMBS[name], {"x": "hidden"})
    assert "MiB of memory" in str(error) or "longer than 4 s" in str(error)
    assert "goroutine" not in str(error)
    assert "hidden" not in str(error)


async def test_aliases_are_not_followed(ytt: Ytt) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    await refused(ytt, "\n".join(lines))


@pytest.mark.parametrize("text", ["[" * 200_000, "- " * 100_000 + "x"])
async def test_nested_text_ends(ytt: Ytt, text: str) -> None:
    await refused(ytt, f"a: {text}")


async def test_object_that_is_too_deep_is_refused(ytt: Ytt) -> None:
    assert "64 levels" in str(await refused(ytt, "a: " + "[" * 64 + "]" * 64))
    await ytt.render("a: " + "[" * 63 + "]" * 63, {}, namespace="team")


async def test_endless_loop_is_stopped_and_others_go_on(real_ytt: Path, start_ytt: StartYtt) -> None:
    ytt = start_ytt(real_ytt, memory=1 << 30)
    loop = "a: #@ [1 for i in range(1 << 30) for j in range(1 << 30) if i < 0]\n"
    began = asyncio.get_running_loop().time()
    endless = asyncio.create_task(refused(ytt, loop))
    ticks = 0
    while not endless.done():
        await asyncio.sleep(0.01)
        ticks += 1
        if ticks == 50:
            assert await ytt.render("a: 1", {}, namespace="other") == {"a": 1}
            assert not endless.done()
    assert "longer than 4 s" in str(await endless)
    assert (await endless).transient
    assert asyncio.get_running_loop().time() - began < 20


async def test_output_that_is_too_large_is_refused(ytt: Ytt) -> None:
    assert "more than 1 MiB" in str(await refused(ytt, "a: #@ 'x' * (1 << 20)"))
    assert await ytt.render("a: #@ 'x' * (1000 << 10)", {}, namespace="team")


@pytest.mark.parametrize(
    "template",
    [
        '#@ load("/etc/passwd", "x")\na: 1\n',
        '#@ load("/etc/passwd.yml", "x")\na: 1\n',
        '#@ load("../../../../../../etc/passwd", "x")\na: 1\n',
        '#@ load("values.yml", "x")\na: 1\n',
        '#@ load("@ytt:data", "data")\na: #@ data.read("/etc/passwd")\n',
        '#@ load("@ytt:data", "data")\na: #@ data.read("values.yml")\n',
        '#@ load("@ytt:data", "data")\na: #@ data.read("../../etc/passwd")\n',
        '#@ load("@ytt:library", "library")\na: #@ library.get("/etc")\n',
        '#@ load("@ytt:library", "library")\na: #@ library.get("../etc")\n',
        '#@ load("@etc:passwd", "x")\na: 1\n',
        '#@ load("@ytt:os", "os")\na: 1\n',
        "a: #@ open('/etc/passwd')\n",
        "a: #@ __import__('os')\n",
    ],
)
async def test_template_reads_no_file(ytt: Ytt, template: str) -> None:
    error = await refused(ytt, template)
    assert "root:" not in str(error)


async def test_template_finds_itself_and_no_other_file(ytt: Ytt) -> None:
    listed = await ytt.render('#@ load("@ytt:data", "data")\na: #@ data.list()\n', {}, namespace="team")
    assert listed == {"a": ["stdin.yml"]}


async def test_template_opens_no_connection(ytt: Ytt) -> None:
    async with listening() as (port, connections):
        for text in (
            f'#@ load("http://127.0.0.1:{port}/x.yml", "x")\na: 1\n',
            f'#@ load("@ytt:data", "data")\na: #@ data.read("http://127.0.0.1:{port}/x")\n',
        ):
            await refused(ytt, text)
    assert connections == []


async def test_program_has_nothing_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start_ytt: StartYtt
) -> None:
    if find_walls().missing:
        pytest.skip(find_walls().missing)
    held = tmp_path / "kubeconfig"
    held.write_text("users: []\n")
    monkeypatch.setenv("KUBECONFIG", str(held))
    script = f"""\
exec 2>/dev/null
names=$(/usr/bin/env | /usr/bin/cut -d= -f1 | /usr/bin/sort | /usr/bin/tr '\\n' ' ')
if read -r line <{held}; then file=read; else file=refused; fi
if read -r line </proc/{os.getpid()}/environ; then process=read; else process=refused; fi
echo "{{\\"names\\": \\"$names\\", \\"file\\": \\"$file\\", \\"process\\": \\"$process\\"}}"
"""
    seen = await start_ytt(program(tmp_path, "ytt", script)).render("a: 1", {}, namespace="team")
    assert set(seen["names"].split()) - {"PWD", "OLDPWD", "SHLVL", "_"} == {"GOMEMLIMIT", "GOTRACEBACK", "LC_ALL"}
    assert (seen["file"], seen["process"]) == ("refused", "refused")


@pytest.mark.parametrize("ending", ["kill -KILL $$", "kill -SEGV $$", "exit 2", "exit 3", "exit 137"])
async def test_program_that_is_killed_is_at_its_limit_and_not_quoted(
    tmp_path: Path, start_ytt: StartYtt, ending: str
) -> None:
    ytt = start_ytt(program(tmp_path, "ytt", f"echo 'goroutine 1: hidden' >&2; {ending}"), memory=SMALL)
    error = await refused(ytt, "a: 1")
    assert "64 MiB of memory" in str(error)
    assert "hidden" not in str(error)


async def test_file_that_is_no_program_is_told(tmp_path: Path, start_ytt: StartYtt) -> None:
    path = program(tmp_path, "ytt", "")
    path.write_bytes(b"\x7fELF\0 no program")
    assert "cannot be started" in str(await refused(start_ytt(path), "a: 1"))


@pytest.mark.parametrize("printed", ["a: 1", "{", "[1", "\\377", '{"a": NaN', "\\001"])
async def test_program_that_prints_no_json_is_told(tmp_path: Path, start_ytt: StartYtt, printed: str) -> None:
    ytt = start_ytt(program(tmp_path, "ytt", f"/usr/bin/printf '{printed}'"))
    assert "no JSON" in str(await refused(ytt, "a: 1"))


async def test_close_kills_what_runs(tmp_path: Path, start_ytt: StartYtt) -> None:
    ytt = start_ytt(program(tmp_path, "ytt", "exec /bin/sleep 600.0275"))
    rendering = asyncio.create_task(refused(ytt, "a: 1"))
    async with asyncio.timeout(20):
        while not running("/bin/sleep", "600.0275"):
            await asyncio.sleep(0.01)
        ytt.close()
        assert (await rendering).transient
        while running("/bin/sleep", "600.0275"):
            await asyncio.sleep(0.01)
