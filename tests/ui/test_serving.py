"""What the page loads: the same bytes as on disk, small, kept by the browser, and nothing else."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import gradio
import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from specviz.host import Host
from specviz.ui import build, serving
from specviz.ui.elements import ASSETS
from specviz.ui.serving import PLOTLY, SCRIPT, STYLE, address, plotly_file
from specviz.ui.theme import head

PAGE = "<p>" + "a page " * 200
GRADIO = Path(gradio.__file__).parent / "templates" / "frontend" / "assets"


@pytest.fixture
def client() -> TestClient:
    """An app that answers everything itself, behind the layer."""
    routes = [
        Route("/", lambda request: HTMLResponse(PAGE)),
        Route("/{path:path}", lambda request: PlainTextResponse("the app's", 418)),
    ]
    return TestClient(Starlette(routes=routes, middleware=[serving.serving()]))


def get(client: TestClient, path: str, accept: str = "gzip, br") -> httpx.Response:
    answer: httpx.Response = client.get(path, headers={"accept-encoding": accept})
    return answer


def a_gradio_script() -> Path:
    return next(path for path in sorted(GRADIO.glob("*.js")) if path.stat().st_size > 10_000)


@pytest.mark.parametrize("name", [SCRIPT, STYLE, PLOTLY])
def test_our_files_are_compressed_and_kept_for_good(client, name):
    plain = get(client, "/" + address(name), accept="identity")
    small = get(client, "/" + address(name))
    assert "content-encoding" not in plain.headers
    assert small.headers["content-encoding"] == "gzip"
    assert plain.content == small.content  # the client has unpacked it
    assert int(small.headers["content-length"]) < 0.4 * len(plain.content)
    for answer in (plain, small):
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["vary"] == "Accept-Encoding"
        assert answer.headers["content-type"].startswith("text/")


def test_every_module_and_sheet_is_in_what_is_served(client):
    script = get(client, "/" + address(SCRIPT)).text
    modules = {path.stem for path in (ASSETS / "js").glob("*.js")} - {"standalone"}
    assert set(re.findall(r"^const module_(\w+) =", script, re.MULTILINE)) == modules
    style = get(client, "/" + address(STYLE)).text
    assert "@import" not in style
    for sheet in (ASSETS / "css").glob("*.css"):
        rules = sheet.read_text(encoding="utf-8").split("*/")[-1].strip()
        assert sheet.name == "standalone.css" or "@import" in rules or rules in style, sheet.name
    assert get(client, "/" + address(PLOTLY)).content == plotly_file().read_bytes()


def test_an_address_names_the_content():
    same, other = (serving.Stored("text/css", content) for content in (b"a", b"b"))
    assert serving.Stored("text/css", b"a").digest == same.digest != other.digest
    assert gzip.decompress(other.compressed) == b"b"


def test_gradios_scripts_are_read_and_compressed_once(client):
    script = a_gradio_script()
    path = f"/assets/{script.name}"
    answer = get(client, path)
    assert answer.content == script.read_bytes()
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "immutable" in answer.headers["cache-control"]
    stored = serving.find(path)
    assert stored is not None
    assert serving.find(path) is stored
    assert stored.compressed is stored.compressed


@pytest.mark.parametrize("prefix", ["", "/user/space"])
def test_any_root_path_will_do(client, prefix):
    assert get(client, f"{prefix}/{address(SCRIPT)}").status_code == 200
    assert get(client, f"{prefix}/assets/{a_gradio_script().name}").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/specviz-files/0123456789abcdef/specviz.js",
        "/specviz-files/specviz.js",
        "/specviz-files/../specviz.js",
        f"/{address(SCRIPT)}/more",
        f"/gradio_api/file={address(SCRIPT)}",
        f"/gradio_api/file=/{address(SCRIPT)}",
        "/assets/main.js",
        "/assets/prompts.json",
        "/assets/%2e%2e/index.html",
        "/assets/..%2findex.html",
        "/specviz.js",
    ],
)
def test_everything_else_is_left_to_the_app(client, path):
    assert get(client, path).text == "the app's"


def test_only_reading_is_answered(client):
    assert client.head("/" + address(STYLE)).status_code == 200
    for method in ("POST", "PUT", "DELETE"):
        assert client.request(method, "/" + address(STYLE)).text != get(client, "/").text
        assert client.request(method, "/" + address(STYLE)).status_code in (405, 418)


def test_the_page_is_compressed(client):
    answer = get(client, "/")
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.text == PAGE
    assert "content-encoding" not in get(client, "/", accept="identity").headers


def test_gradio_itself_serves_none_of_our_files_from_disk():
    from gradio.data_classes import _StaticFiles

    build(host=Host(gallery=True)).close(verbose=False)
    icons = Path(gradio.__file__).parent / "icons"
    assert all(Path(path).is_relative_to(icons) for path in _StaticFiles.all_paths)


def test_the_head_names_what_is_served(client):
    named = re.findall(r'(?:href|src)="([^"]+)"', head())
    assert named == [address(STYLE), address(SCRIPT)]
    for path in named:
        assert get(client, "/" + path).status_code == 200
