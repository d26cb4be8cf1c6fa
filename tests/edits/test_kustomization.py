"""The image is set as `kustomize edit set image` would, and no line changes that need not."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kardinal.edits.images import ImageChange, PromotedImage
from kardinal.edits.kustomize.kustomization import KustomizationError, image_changes, set_images
from kardinal.objects.image_reference import ImageReference

REPOSITORY = "ghcr.io/myorg/my-app"
DIGEST = "sha256:" + "ab" * 32
OTHER_DIGEST = "sha256:" + "cd" * 32


def promoted(reference: str = f"{REPOSITORY}:1.29.0", *, name: str = "my-app") -> PromotedImage:
    return PromotedImage(name, ImageReference.parse(reference))


def edited(text: str, *images: PromotedImage) -> str:
    return set_images(textwrap.dedent(text).encode(), images or (promoted(),)).decode()


def changed_lines(before: str, after: str) -> tuple[list[str], list[str]]:
    old = before.splitlines(keepends=True)
    new = after.splitlines(keepends=True)
    return [line for line in old if line not in new], [line for line in new if line not in old]


FILE = """\
# Owned by team red.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:   # from the base
- ../../base

images:
- name: nginx          # the proxy
  newTag: "1.25"
- name: my-app
  newName: ghcr.io/myorg/my-app # ours
  newTag: 1.28.0  # {set by kardinal}

# at the end
replicas:
- {name: my-app, count: 3}
"""


def test_only_the_line_of_the_tag_changes() -> None:
    after = edited(FILE)
    assert changed_lines(FILE, after) == (
        ["  newTag: 1.28.0  # {set by kardinal}\n"],
        ["  newTag: 1.29.0  # {set by kardinal}\n"],
    )


def test_line_endings_of_another_system_stay() -> None:
    before = FILE.replace("\n", "\r\n")
    after = set_images(before.encode(), [promoted(f"{REPOSITORY}:1.29.0@{DIGEST}")]).decode()
    assert changed_lines(before, after) == (
        ["  newTag: 1.28.0  # {set by kardinal}\r\n"],
        ["  newTag: 1.29.0  # {set by kardinal}\r\n", f"  digest: {DIGEST}\r\n"],
    )


def test_a_missing_final_newline_stays_missing() -> None:
    assert edited("images:\n- name: ghcr.io/myorg/my-app\n  newTag: a").endswith("  newTag: 1.29.0")
    assert edited("resources:\n- base").endswith("images:\n- name: ghcr.io/myorg/my-app\n  newTag: 1.29.0")


def test_a_byte_order_mark_stays() -> None:
    assert set_images(b"\xef\xbb\xbfresources: []\n", [promoted()]).startswith(
        b"\xef\xbb\xbfresources: []\nimages:\n- "
    )


def test_an_image_that_is_already_set_changes_nothing() -> None:
    once = edited(FILE)
    assert set_images(once.encode(), [promoted()]) == once.encode()


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("name: ghcr.io/myorg/my-app, newTag: old", {"name": REPOSITORY, "newTag": "1.29.0"}),
        ("name: app, newName: ghcr.io/myorg/my-app", {"name": "app", "newName": REPOSITORY, "newTag": "1.29.0"}),
        ("name: my-app, newTag: old", {"name": "my-app", "newTag": "1.29.0", "newName": REPOSITORY}),
        (
            f"name: {REPOSITORY}, newName: mirror/x, newTag: old",
            {"name": REPOSITORY, "newName": "mirror/x", "newTag": "1.29.0"},
        ),
        (f"name: {REPOSITORY}, newTag: old, tagSuffix: -x", {"name": REPOSITORY, "newTag": "1.29.0"}),
        (f"name: {REPOSITORY}, digest: '{OTHER_DIGEST}'", {"name": REPOSITORY, "newTag": "1.29.0"}),
        (f"name: {REPOSITORY}, newName: null, newTag: ~", {"name": REPOSITORY, "newName": None, "newTag": "1.29.0"}),
    ],
)
@pytest.mark.parametrize("style", ["flow", "block", "block, indented"])
def test_the_fields_of_the_entry_become_those_of_the_reference(
    entry: str, expected: dict[str, Any], style: str
) -> None:
    if style == "flow":
        text = f"images: [{{{entry}}}]\n"
    else:
        indent = "  " if style == "block, indented" else ""
        text = f"images:\n{indent}- " + entry.replace(", ", f"\n{indent}  ") + "\nresources: []\n"
    assert yaml.safe_load(edited(text))["images"] == [expected]


def test_the_repository_comes_before_the_artifacts_name() -> None:
    after = edited(f"images: [{{name: my-app, newTag: keep}}, {{name: x, newName: {REPOSITORY}}}]\n")
    assert yaml.safe_load(after)["images"] == [
        {"name": "my-app", "newTag": "keep"},
        {"name": "x", "newName": REPOSITORY, "newTag": "1.29.0"},
    ]


def test_every_entry_that_yields_the_repository_is_set() -> None:
    after = edited(f"images:\n- name: a\n  newName: {REPOSITORY}\n- name: b\n  newName: {REPOSITORY}\n  newTag: old\n")
    assert [entry["newTag"] for entry in yaml.safe_load(after)["images"]] == ["1.29.0", "1.29.0"]


def test_two_ways_of_writing_a_repository_are_one() -> None:
    after = edited("images:\n- name: nginx\n  newTag: old\n", promoted("docker.io/library/nginx:1.27.1", name="web"))
    assert after == "images:\n- name: nginx\n  newTag: 1.27.1\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "images:\n- name: ghcr.io/myorg/my-app\n  newTag: 1.29.0\n"),
        ("# empty\n", "# empty\nimages:\n- name: ghcr.io/myorg/my-app\n  newTag: 1.29.0\n"),
        (
            "resources:\n  - base\n",
            "resources:\n  - base\nimages:\n  - name: ghcr.io/myorg/my-app\n    newTag: 1.29.0\n",
        ),
        ("images: [] # none\n", "images: # none\n- name: ghcr.io/myorg/my-app\n  newTag: 1.29.0\n"),
        ("images:\nkind: x\n", "images:\n- name: ghcr.io/myorg/my-app\n  newTag: 1.29.0\nkind: x\n"),
        ("images: null\n", "images:\n- name: ghcr.io/myorg/my-app\n  newTag: 1.29.0\n"),
        ("{kind: x}\n", "{kind: x, images: [{name: ghcr.io/myorg/my-app, newTag: 1.29.0}]}\n"),
        ("{images: [ ]}", "{images: [{name: ghcr.io/myorg/my-app, newTag: 1.29.0}]}"),
        (
            "images:\n-   name: a\n    # about a\n\n# about kind\nkind: x\n",
            "images:\n-   name: a\n-   name: ghcr.io/myorg/my-app\n    newTag: 1.29.0\n"
            "    # about a\n\n# about kind\nkind: x\n",
        ),
        (
            "images: [\n  {name: a},\n]\n",
            "images: [\n  {name: a}, {name: ghcr.io/myorg/my-app, newTag: 1.29.0},\n]\n",
        ),
        ("---\nkind: x\n...\n", "---\nkind: x\nimages:\n- name: ghcr.io/myorg/my-app\n  newTag: 1.29.0\n...\n"),
    ],
)
def test_a_missing_entry_is_added_in_the_style_of_the_file(before: str, after: str) -> None:
    assert edited(before) == after


@pytest.mark.parametrize(
    ("tag", "written"),
    [
        ("1.29.0", "1.29.0"),
        ("v1", "v1"),
        ("1.29", '"1.29"'),
        ("129", '"129"'),
        ("1e5", '"1e5"'),
        ("123e456", '"123e456"'),
        ("0x1f", '"0x1f"'),
        ("1_000", '"1_000"'),
        ("true", '"true"'),
        ("NO", '"NO"'),
        ("y", '"y"'),
        ("null", '"null"'),
        ("2026-03-03", '"2026-03-03"'),
    ],
)
def test_a_tag_that_could_be_read_as_something_else_is_quoted(tag: str, written: str) -> None:
    after = edited("images:\n- name: app\n  newTag: old\n", promoted(f"app:{tag}"))
    assert after == f"images:\n- name: app\n  newTag: {written}\n"


@pytest.mark.parametrize("quote", ["'", '"'])
def test_quotes_stay_as_they_are(quote: str) -> None:
    after = edited(f"images:\n- name: {REPOSITORY}\n  newTag: {quote}old{quote} # x\n")
    assert after == f"images:\n- name: {REPOSITORY}\n  newTag: {quote}1.29.0{quote} # x\n"


def test_a_digest_without_a_tag_takes_the_tag_away() -> None:
    before = f"images:\n- newTag: old\n  name: {REPOSITORY}\n"
    assert edited(before, promoted(f"{REPOSITORY}@{DIGEST}")) == f"images:\n- name: {REPOSITORY}\n  digest: {DIGEST}\n"
    before = f"images:\n- name: {REPOSITORY}\n  digest: {OTHER_DIGEST}\n  newTag: old"
    assert edited(before, promoted(f"{REPOSITORY}@{DIGEST}")) == f"images:\n- name: {REPOSITORY}\n  digest: {DIGEST}"


def test_several_images_are_set_at_once() -> None:
    after = edited("images:\n- name: a\n- name: b\n", promoted("a:1.0.1", name=""), promoted("c:1.0.3", name="b"))
    assert yaml.safe_load(after)["images"] == [
        {"name": "a", "newTag": "1.0.1"},
        {"name": "b", "newName": "c", "newTag": "1.0.3"},
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("images: {a: b", "invalid YAML: line 2, column 1"),
        ("a: 1\n---\nb: 1\n", "invalid YAML"),
        ("- a\n", "must be a mapping"),
        ("images: nginx\n", "images: must be a list of entries with a name, not the value 'nginx'"),
        ("images:\n  name: a\n", "images: must be a list of entries with a name, not a mapping"),
        ("images: [nginx]\n", r"images[0]: must be an entry with a name, not the value 'nginx'"),
        ("images: [{name: a}, {newTag: b}]\n", r"images[1].name: is missing"),
        ("images: [{name: a, newTag: [1]}]\n", r"images[0].newTag: must be text, not a list"),
        ("images: []\nimages: []\n", "images: stands there more than once"),
        pytest.param("a: " + "[" * 300_000, "levels of nesting", id="deep"),
        ("a: \x00", "invalid YAML"),
    ],
)
def test_uneditable_kustomization_is_refused_with_the_field(text: str, words: str) -> None:
    with pytest.raises(KustomizationError) as refused:
        edited(text)
    assert words in str(refused.value)


def test_text_that_is_not_unicode_is_refused() -> None:
    with pytest.raises(KustomizationError, match="not UTF-8 text"):
        set_images(b"images: \xff\n", [promoted()])


def test_two_versions_of_one_repository_are_refused() -> None:
    with pytest.raises(KustomizationError, match="two versions of nginx: 1 and 2"):
        edited("images: []\n", promoted("nginx:1"), promoted("docker.io/library/nginx:2"))


@pytest.mark.parametrize(
    "text",
    [
        f"x: &tag old\nimages:\n- name: {REPOSITORY}\n  newTag: *tag\n",
        f"images:\n- name: {REPOSITORY}\n  newTag: &tag old\nlabels: [*tag]\n",
    ],
)
def test_an_edit_that_would_reach_elsewhere_through_an_alias_is_refused(text: str) -> None:
    with pytest.raises(KustomizationError, match="without changing something else"):
        edited(text)


def test_the_changes_of_an_edit_are_what_the_entries_yielded_before_and_yield_now() -> None:
    before = b"images:\n- {name: a, newName: r/a, newTag: 1}\n- {name: same, newTag: x}\n"
    after = set_images(before, [promoted("r/a:2"), promoted("r/b:1", name="")])
    assert image_changes(before, after) == [
        ImageChange("a", ImageReference("r/a", "1"), ImageReference("r/a", "2")),
        ImageChange("r/b", None, ImageReference("r/b", "1")),
    ]
    assert image_changes(None, b"images: [{name: a}]") == [ImageChange("a", None, ImageReference("a"))]


NAMES = st.sampled_from(["app", "nginx", "r/a", "r/b", REPOSITORY, "localhost:5000/x", "docker.io/library/nginx"])
TAGS = st.sampled_from(["1.28.0", "v2", "1.0", "latest", "123e4", "a.b-c_d"])
ENTRIES = st.fixed_dictionaries(
    {"name": NAMES},
    optional={"newName": NAMES, "newTag": TAGS, "digest": st.just(OTHER_DIGEST), "tagSuffix": st.just("-x")},
)
OTHER_FIELDS = st.dictionaries(
    st.sampled_from(["resources", "namespace", "labels", "zz"]),
    st.one_of(st.lists(st.text(max_size=6), max_size=3), st.text(max_size=8), st.none(), st.dictionaries(NAMES, TAGS)),
    max_size=4,
)


@st.composite
def kustomizations(draw: st.DrawFn) -> str:
    fields: dict[str, Any] = dict(draw(OTHER_FIELDS))
    if draw(st.booleans()):
        fields["images"] = draw(st.lists(ENTRIES, max_size=4))
    keys = draw(st.permutations(sorted(fields)))
    style = draw(st.sampled_from([None, None, "'", '"']))
    flow = draw(st.sampled_from([False, False, None, True]))
    text: str = yaml.safe_dump(
        {key: fields[key] for key in keys}, sort_keys=False, default_style=style, default_flow_style=flow, width=40
    )
    if draw(st.booleans()):
        text = text.removesuffix("\n")
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return text


@given(kustomizations(), NAMES, TAGS, st.sampled_from(["", f"@{DIGEST}"]), st.sampled_from(["", "app", "r/b"]))
def test_any_kustomization_differs_afterwards_in_its_images_alone(
    text: str, repository: str, tag: str, digest: str, name: str
) -> None:
    image = promoted(f"{repository}:{tag}{digest}", name=name)
    after = set_images(text.encode(), [image])
    before_data = yaml.safe_load(text) or {}
    after_data = yaml.safe_load(after)
    entries = after_data.pop("images")
    before_entries = before_data.pop("images", None) or []
    assert after_data == before_data
    yielding = [
        entry
        for entry in entries
        if image.reference.canonical
        in (ImageReference(entry["name"]).canonical, ImageReference(entry.get("newName") or entry["name"]).canonical)
    ]
    assert yielding
    assert {(entry.get("newTag"), entry.get("digest")) for entry in yielding} == {(tag, digest[1:] or None)}
    assert [entry["name"] for entry in entries[: len(before_entries)]] == [entry["name"] for entry in before_entries]
    assert all(entry in before_entries for entry in entries if entry not in yielding)
    assert set_images(after, [image]) == after
