"""`kardinal catalog import` asks a Lieutenant, which is a stand-in on loopback, and prints documents."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from kardinal.catalog.kinds import CatalogCluster, CatalogTenant
from tests.cli.conftest import Finished
from tests.cli.in_process import InProcess

JsonObject = dict[str, Any]

TOKEN = "sesame-4711"
TENANT = {
    "id": "t-acme",
    "displayName": "Acme Ltd",
    "globalGitRepoURL": "ssh://git@git.example.com/syn/global.git",
    "globalGitRepoRevision": "v12",
    "gitRepo": {"url": "ssh://git@git.example.com/acme/inventory.git"},
}
ONE = {
    "id": "c-one",
    "displayName": "One",
    "tenant": "t-acme",
    "facts": {"distribution": "k3s", "cloud": "exoscale"},
    "dynamicFacts": {"nodes": 3},
    "gitRepo": {"url": "ssh://git@git.example.com/acme/c-one.git"},
}
TWO = {
    "id": "c-two",
    "tenant": "t-acme",
    "facts": {"distribution": "rke2", "cloud": "none"},
    "globalGitRepoRevision": "next",
    "tenantGitRepoRevision": "wip",
}
ANSWERS: dict[str, object] = {"/clusters": [TWO, ONE], "/tenants/t-acme": TENANT}


class Lieutenant:
    """A stand-in for the API: JSON by path, or a function that answers a request itself."""

    def __init__(self) -> None:
        self.answers: dict[str, object] = dict(ANSWERS)
        self.asked: list[tuple[str, str]] = []
        """Path and Authorization of each request."""
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                stand_in.asked.append((self.path, self.headers.get("Authorization", "")))
                answer = stand_in.answers.get(self.path)
                if callable(answer):
                    answer(self)
                    return
                body = json.dumps(answer).encode()
                self.send_response(404 if answer is None else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
                """Print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def lieutenant() -> Iterator[Lieutenant]:
    stand_in = Lieutenant()
    thread = threading.Thread(target=stand_in.server.serve_forever, daemon=True)
    thread.start()
    yield stand_in
    stand_in.server.shutdown()
    stand_in.server.server_close()
    thread.join()


def run(tmp_path: Path, url: str, *, token: str | None = TOKEN) -> Finished:
    arguments = ["catalog", "import", "--lieutenant", url]
    if token is not None:
        (tmp_path / "token").write_text(f"{token}\n")
        arguments += ["--token-file", "token"]
    return InProcess(Path("/nonexistent"), tmp_path).run(*arguments)


def test_tenants_and_clusters_are_printed_as_documents(lieutenant: Lieutenant, tmp_path: Path) -> None:
    done = run(tmp_path, lieutenant.url)

    assert done.code == 0, done.err
    tenant, one, two = yaml.safe_load_all(done.out)
    spec = CatalogTenant.model_validate(tenant).spec
    assert (tenant["metadata"]["name"], spec.display_name) == ("t-acme", "Acme Ltd")
    assert (spec.global_.url, spec.global_.revision) == ("ssh://git@git.example.com/syn/global.git", "v12")
    assert (spec.inventory.url, spec.inventory.revision) == ("ssh://git@git.example.com/acme/inventory.git", None)
    assert one["spec"] == {
        "displayName": "One",
        "tenant": "t-acme",
        "facts": {"distribution": "k3s", "cloud": "exoscale"},
        "dynamicFacts": {"nodes": 3},
        "catalog": {"url": "ssh://git@git.example.com/acme/c-one.git"},
    }
    own = CatalogCluster.model_validate(two).spec
    assert own.global_ is not None
    assert own.inventory is not None
    assert (own.global_.url, own.global_.revision) == ("ssh://git@git.example.com/syn/global.git", "next")
    assert (own.inventory.url, own.inventory.revision) == ("ssh://git@git.example.com/acme/inventory.git", "wip")


def test_printed_documents_pass_lint(lieutenant: Lieutenant, tmp_path: Path) -> None:
    (tmp_path / "inventory.yaml").write_text(run(tmp_path, lieutenant.url).out)
    done = InProcess(Path("/nonexistent"), tmp_path).run("lint", "-f", "inventory.yaml")
    assert (done.code, done.out) == (0, "3 resources are fine\n")


def test_the_token_goes_with_each_request_and_into_no_message(lieutenant: Lieutenant, tmp_path: Path) -> None:
    run(tmp_path, lieutenant.url)
    assert lieutenant.asked == [("/clusters", f"Bearer {TOKEN}"), ("/tenants/t-acme", f"Bearer {TOKEN}")]
    lieutenant.answers["/clusters"] = {"token": TOKEN}
    refused = run(tmp_path, lieutenant.url)
    assert refused.code == 1
    assert TOKEN not in refused.err


def _with_status(status: int, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", "0")
        request.end_headers()

    return answer


def test_a_redirect_is_not_followed_with_the_token(lieutenant: Lieutenant, tmp_path: Path) -> None:
    lieutenant.answers["/clusters"] = _with_status(302, Location=f"{lieutenant.url}/elsewhere")
    done = run(tmp_path, lieutenant.url)
    assert done.code == 1
    assert "/clusters answers 302" in done.err
    assert [path for path, _ in lieutenant.asked] == ["/clusters"]


def test_a_refused_token_is_told_with_the_option(lieutenant: Lieutenant, tmp_path: Path) -> None:
    lieutenant.answers["/clusters"] = _with_status(401)
    done = run(tmp_path, lieutenant.url)
    assert (done.code, "--token-file" in done.err) == (1, True)


def test_an_answer_without_an_end_is_given_up(lieutenant: Lieutenant, tmp_path: Path) -> None:
    def endless(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        try:
            while True:
                request.wfile.write(b" " * (1 << 20))
        except OSError:
            return

    lieutenant.answers["/clusters"] = endless
    done = run(tmp_path, lieutenant.url)
    assert done.code == 1
    assert "answers with more than" in done.err


@pytest.mark.parametrize(
    ("path", "answer", "said"),
    [
        ("/clusters", {"items": []}, "is no list of clusters"),
        ("/clusters", [{"id": "c-one"}], "c-one has no tenant"),
        ("/clusters", [ONE | {"tenant": "../../x"}], "c-one has a tenant whose name"),
        ("/clusters", [[]], "is no list of clusters"),
        ("/tenants/t-acme", TENANT | {"id": "t-other"}, "tenant t-acme: the answer is another tenant"),
        ("/tenants/t-acme", TENANT | {"gitRepo": {}}, "t-acme has no url"),
        ("/tenants/t-acme", None, "/tenants/t-acme answers 404"),
    ],
)
def test_an_answer_that_makes_no_document_is_named(
    lieutenant: Lieutenant, tmp_path: Path, path: str, answer: object, said: str
) -> None:
    lieutenant.answers[path] = answer
    done = run(tmp_path, lieutenant.url)
    assert (done.code, done.out) == (1, "")
    assert said in done.err


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("api.example.com", "--lieutenant has to be a URL"),
        ("ftp://api.example.com", "--lieutenant has to be a URL"),
        ("https://me:secret@api.example.com", "--lieutenant has to be a URL"),
        ("http://api.example.com", "the token would travel in the clear"),
        ("http://127.0.0.1:1", "http://127.0.0.1:1/clusters has not answered"),
    ],
)
def test_an_address_that_cannot_be_asked_is_refused(tmp_path: Path, url: str, said: str) -> None:
    done = run(tmp_path, url)
    assert done.code == 1
    assert said in done.err
    assert "secret" not in done.err
