"""What a host allows, tried from the page, from its links, from programs and past all of them."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
from gradio_client import Client
from playwright.sync_api import expect
from test_analysis import fill, only, rows, sweep
from tiny import TinyShelf
from visit import PAIRS, Site, serve

from specviz.host import Host
from specviz.ui import build
from specviz.ui.elements import ASSETS, Choice
from specviz.ui.live import on_offer
from specviz.ui.loading import Loading
from specviz.ui.serving import SCRIPT, address, plotly_file

ROOT = Path(__file__).parents[2]
SECOND = (Choice("second", "Second pair"), "second target", "second draft")
CLOSED = Host(
    pairs=("second", "tiny"),
    other_models=False,
    folders=(),
    max_new_tokens=20,
    max_runs=3,
    max_prompt_characters=60,
)
PASSWORDS = "/etc/passwd"


class RecordingShelf(TinyShelf):
    """Remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[tuple[str, str]] = set()

    def load(self, target: str, draft: str, dtype: str = "auto", progress: Any = None) -> Any:
        """As the shelf's own."""
        self.asked.add((target, draft))
        return super().load(target, draft, dtype, progress)


@contextmanager
def hosted(host: Host) -> Iterator[Site]:
    shelf = RecordingShelf()
    page = build(shelf, pairs=[*PAIRS, SECOND], first=None, host=host)
    yield Site(serve(page), shelf)
    page.close(verbose=False)


@pytest.fixture(scope="module")
def closed() -> Iterator[Site]:
    with hosted(CLOSED) as one:
        yield one


@pytest.fixture(scope="module")
def opened() -> Iterator[Site]:
    """A host on which other models may be typed in, but no folder be opened."""
    with hosted(Host(folders=())) as one:
        yield one


class Wire:
    """Speaks to the server as the page's script does, with any values."""

    def __init__(self, site: Site) -> None:
        self._address = urlsplit(site.url).netloc
        self._config = json.loads(self.ask("GET", "/config")[1])
        components = self._config["components"]
        self._values = {one["id"]: one["props"].get("value") for one in components}
        self._ids = {one["props"].get("elem_id"): one["id"] for one in components}

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        """Status and body of an answer. The path goes out as it is, dots and all."""
        connection = http.client.HTTPConnection(self._address, timeout=30)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def press(self, elem_id: str, event: str = "click", **given: Any) -> dict[str, Any]:
        """Trigger an event that does not wait in the queue. Inputs have their first values, but
        for those ``given`` by element id."""
        wanted = [self._ids[elem_id], event]
        index, found = next(
            (i, one)
            for i, one in enumerate(self._config["dependencies"])
            if wanted in [list(target) for target in one["targets"]]
        )
        values = self._values | {self._ids[name]: value for name, value in given.items()}
        data = [values.get(one) for one in found["inputs"]]
        body = json.dumps({"data": data, "fn_index": index, "session_hash": "wire"}).encode()
        status, answer = self.ask(
            "POST", "/gradio_api/run/predict", body, content_type="application/json"
        )
        return {"status": status, **json.loads(answer)}

    def upload(self, body: bytes, name: str = "a.json") -> tuple[int, bytes]:
        """Send a file."""
        disposition = f'form-data; name="files"; filename="{name}"'
        head = f"--x\r\nContent-Disposition: {disposition}\r\n\r\n".encode()
        return self.ask(
            "POST",
            "/gradio_api/upload",
            head + body + b"\r\n--x--\r\n",
            content_type="multipart/form-data; boundary=x",
        )


# --- models --------------------------------------------------------------------------------


def test_the_hosts_pairs_are_on_offer_in_its_order_and_no_others(visit, closed):
    one = visit(at=closed).ready()
    titles = one.page.locator("#pair option").all_inner_texts()
    assert titles == ["Second pair", "Tiny pair"]
    expect(one.page.locator("#target")).to_be_hidden()
    assert ("second target", "second draft") in closed.shelf.asked


def test_where_no_allowed_pair_can_run_the_page_says_why():
    loading = Loading(TinyShelf(), on_offer(PAIRS, Host(pairs=("huge",))))
    loading.begin()
    while loading.state == "loading":
        time.sleep(0.01)
    assert loading.state == "failed"
    assert "Huge pair: needs 160 GB of memory" in loading.text


def test_programs_get_the_hosts_pairs_and_no_others(closed):
    client = Client(closed.url, verbose=False)
    assert [one["name"] for one in client.predict(api_name="/pairs")] == ["second", "tiny"]
    for pair in ("broken", "huge", "other", "gpt2", PASSWORDS, "../..", ""):
        with pytest.raises(Exception, match="There is no pair"):
            client.predict("Once", pair=pair, api_name="/run")


@pytest.mark.parametrize("query", [{"pair": "other"}, {"pair": "broken"}, {"pair": PASSWORDS}])
def test_a_link_cannot_choose_what_the_host_does_not_offer(visit, closed, query):
    link = urlencode({**query, "target": PASSWORDS, "draft": "../..", "prompt": "From afar"})
    one = visit(f"/?{link}", at=closed).ready()
    expect(one.page.get_by_text("The link was not followed")).to_be_visible()
    assert one.page.locator("#pair select").input_value() == "second"
    assert one.page.locator("#prompt textarea").input_value() != "From afar"


@pytest.mark.parametrize("target", [PASSWORDS, "../../etc", "~", "file:///etc"])
def test_a_link_cannot_name_a_folder_where_none_is_allowed(visit, opened, target):
    one = visit("/?" + urlencode({"pair": "other", "target": target}), at=opened).ready()
    expect(one.page.get_by_text("cannot be used")).to_be_visible()


def test_values_sent_past_the_page_load_no_other_model(closed, opened):
    for site in (closed, opened):
        wire = Wire(site)
        for target in (PASSWORDS, "../../etc", "~root", "file:///etc"):
            for pair in ("other", "no such pair"):
                wire.press("run", pair=pair, target=target, draft=target)
        assert "ticket" in json.dumps(wire.press("run", pair="tiny", max_new_tokens=2))
        allowed = {"second target", "second draft", "tiny target", "tiny draft"}
        assert {name for both in site.shelf.asked for name in both} <= allowed


def test_a_hub_id_may_be_typed_where_the_host_allows_it(visit, opened):
    one = visit(at=opened).ready()
    one.page.locator("#pair select").select_option("other")
    one.page.locator("#target input, #target textarea").fill("owner/model")
    one.settings(max_new_tokens=4).finish()
    assert ("owner/model", "") in opened.shelf.asked


# --- limits --------------------------------------------------------------------------------


def test_a_run_that_is_too_large_is_refused_with_the_limit(visit, closed):
    one = visit(at=closed).ready()
    one.page.locator("#prompt textarea").fill("word")
    one.settings(max_new_tokens=21)
    expect(one.page.locator("#max_new_tokens")).to_contain_text("at most 20")
    one.button("run").click()
    one.status("this host runs 20 at most")
    one.settings(max_new_tokens=20)
    one.page.locator("#prompt textarea").fill("word " * 13)
    one.button("run").click()
    one.status("65 characters long; this host takes 60 at most")
    one.page.locator("#prompt textarea").fill("word")
    one.finish()


def test_a_program_is_refused_the_same(closed):
    client = Client(closed.url, verbose=False)
    with pytest.raises(Exception, match="this host runs 20 at most"):
        client.predict("Once", max_new_tokens=21, api_name="/run")
    with pytest.raises(Exception, match="this host takes 60 at most"):
        client.predict("x" * 61, max_new_tokens=2, api_name="/run")


def test_a_sweep_is_refused_the_same(visit, closed):
    one = visit(at=closed).ready()
    one.page.get_by_role("tab", name="Sweep").click()
    message = one.page.locator(".sv-sweep-status")
    one.page.get_by_role("radio", name="pasted").click()
    pasted = one.page.locator("#sweep-pasted textarea")
    pasted.fill("short\n" + "word " * 13)
    one.page.locator("button#sweep-run").click()
    expect(message).to_contain_text("this host takes 60 at most")
    pasted.fill("short")
    one._fill(one.page.locator("#sweep-tokens input"), "21")
    one.page.locator("button#sweep-run").click()
    expect(message).to_contain_text("this host runs 20 at most")


def test_a_sweep_of_too_many_runs_is_refused_and_the_one_before_it_stays(visit, closed):
    one = visit(at=closed).ready()
    one.page.get_by_role("tab", name="Sweep").click()
    expect(one.page.locator("#sweep-results [data-mounted]")).to_be_attached()
    one.page.get_by_role("radio", name="pasted").click()
    one.page.locator("#sweep-pasted textarea").fill("short\nshorter")
    fill(one, gammas="2", limit=0, tokens=4)
    only(one, "draft model")
    sweep(one, "Done: 2 of 2 runs.")
    before = rows(one)
    fill(one, gammas="2, 3")
    sweep(one, "This sweep has more than 3 runs")  # seen from its settings alone
    assert rows(one) == before
    fill(one, gammas="2")
    sweep(one, "Done: 2 of 2 runs.")
    one.page.locator("#sweep-drafters label", has_text="prompt lookup").locator("input").check()
    sweep(one, "This sweep has more than 3 runs")  # seen once the target is loaded
    assert rows(one) == before
    with one.page.expect_download() as download:
        one.page.locator("button#sweep-json").click()
    saved = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert len(saved["runs"]) == 2


def test_a_proof_is_refused_the_same(visit, closed):
    one = visit(at=closed).ready()
    one.page.get_by_role("tab", name="Lossless").click()
    slider = one.page.locator("#greedy-tokens input[type=number]")
    expect(slider).to_have_value("20")
    for name, button in (("greedy", "prove-greedy"), ("sampled", "prove-sampled")):
        one.page.locator(f"#{name}-prompt textarea").fill("word " * 13)
        one.button(button).click()
        expect(one.page.locator(f"#proof-{name}")).to_contain_text("this host takes 60 at most")


# --- files ---------------------------------------------------------------------------------


def nasty() -> list[str]:
    """Paths under which something could be read that is no asset."""
    secret = [
        PASSWORDS,
        "app.py",
        "requirements.txt",
        "./app.py",
        f"{ROOT}/app.py",
        f"{ROOT}/requirements.txt",
        f"{ROOT}/specviz/host.py",
        f"{ROOT}/.git/config",
        f"{ROOT}/assets/prompts.json",
        f"{ROOT}/assets/js/../../app.py",
        f"{ASSETS}/js/../traces/../../README.md",
        f"{ASSETS}/js",
        f"{ASSETS}/js/",
        f"{ASSETS}/js/main.js",
        f"{ASSETS}/js/none.js",
        f"{ASSETS}/js/main.js/../../prompts.json",
        f"{ASSETS}/js/main.js\0.json",
        f"{plotly_file().parent}/datasets/iris.csv.gz",
        f"{plotly_file().parents[1]}/__init__.py",
        "~/.bashrc",
        "/proc/self/environ",
        "/dev/null",
        "\\\\server\\share",
        "file:///etc/passwd",
        "ftp://example.com/x",
    ]
    plain = [quote(path, safe="/\\~:.") for path in secret]
    encoded = [quote(path, safe="") for path in secret]
    doubled = [quote(quote(path, safe=""), safe="") for path in secret[:6]]
    dotted = [path.replace("..", "%2e%2e") for path in plain if ".." in path]
    climbing = ["../" * 12 + "etc/passwd", "%2e%2e/" * 12 + "etc/passwd", "..%2f" * 12 + "etc"]
    return [
        *(f"/gradio_api/file={path}" for path in (*plain, *encoded, *doubled, *dotted, *climbing)),
        *(f"/gradio_api/file/{path}" for path in (PASSWORDS, "app.py", *climbing)),
        *(f"/file={path}" for path in (PASSWORDS, "app.py")),
        *(f"/static/{path}" for path in climbing),
        *(f"/assets/{path}" for path in climbing),
        *(f"/{address(SCRIPT)}/{path}" for path in climbing),
        *(f"/specviz-files/{path}" for path in ("main.js", "0/specviz.js", *climbing)),
        *(f"/svelte/{path}" for path in climbing),
        f"/gradio_api/custom_component/x/client/component/{quote('../../app.py', safe='')}",
        "/app.py",
        "/requirements.txt",
        "/monitoring",
        "/monitoring/summary",
        "/gradio_api/deep_link?session_hash=wire",
        "/gradio_api/vibe-code",
        "/gradio_api/dev/reload",
        "/gradio_api/run-history/buckets",
        "/gradio_api/stream/a/b/1/playlist.m3u8",
    ]


def test_no_path_reads_anything_but_assets(closed, tmp_path):
    wire = Wire(closed)
    assert wire.ask("GET", "/" + address(SCRIPT))[0] == 200
    cached = tmp_path / "model.safetensors"
    cached.write_bytes(b"weights")
    for path in [*nasty(), f"/gradio_api/file={cached}"]:
        status, body = wire.ask("GET", path)
        assert status in (403, 404, 405), path
        assert b"root:" not in body, path


@contextmanager
def other_server() -> Iterator[tuple[str, list[str]]]:
    """A server on this machine that must never be asked for anything; its address, and what it
    was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/", asked
    server.shutdown()
    server.server_close()


def test_the_server_fetches_no_address_for_anybody(closed):
    wire = Wire(closed)
    with other_server() as (address, asked):
        for prefix in ("file=", "proxy=", "FILE="):
            for where in (address, address.replace("http", "HTTP"), quote(address, safe="")):
                assert wire.ask("GET", f"/gradio_api/{prefix}{where}")[0] in (400, 403, 404)
        for path in (address, f"{address}a.json"):
            file = {"path": path, "url": path, "meta": {"_type": "gradio.FileData"}}
            answer = wire.press("open", "upload", open=file)
            assert "Nothing is fetched from the web here" in answer["error"]
        assert asked == []


@pytest.mark.parametrize("elem_id", ["open", "sweep-open", "trace-drop"])
def test_a_file_that_was_not_uploaded_is_not_opened(closed, elem_id):
    wire = Wire(closed)
    _, uploaded = wire.upload(b"{}")
    file = {"path": json.loads(uploaded)[0], "meta": {"_type": "gradio.FileData"}}
    assert wire.press(elem_id, "upload", **{elem_id: file})["status"] == 200
    for path in (PASSWORDS, f"{ROOT}/assets/traces/first.json", "../../../etc/passwd"):
        file = {"path": path, "meta": {"_type": "gradio.FileData"}}
        answer = wire.press(elem_id, "upload", **{elem_id: file})
        assert answer["status"] != 200, path
        assert "root:" not in json.dumps(answer)


def test_an_upload_is_bounded(closed):
    wire = Wire(closed)
    assert wire.upload(b"{}")[0] == 200
    status, body = wire.upload(b"a" * 34_000_000)
    assert (status, b"maximum allowed size" in body) == (413, True)
    status, body = wire.upload(b"a" * 45_000_000)
    assert (status, body) == (413, b"The request is larger than 40 MB.")


def test_a_body_of_untold_length_ends_where_it_is_too_long(closed):
    wire = Wire(closed)
    connection = http.client.HTTPConnection(urlsplit(closed.url).netloc, timeout=60)
    pieces = (b"a" * 1_000_000 for _ in range(100))
    try:
        connection.request("POST", "/gradio_api/run/predict", pieces, encode_chunked=True)
        assert connection.getresponse().status >= 400
    except (BrokenPipeError, ConnectionResetError, http.client.BadStatusLine):
        pass  # the server hung up, which is as good
    assert wire.ask("GET", "/config")[0] == 200


def test_an_uploaded_page_is_handed_out_as_a_file_and_never_shown(closed):
    wire = Wire(closed)
    _, answer = wire.upload(b"<script>window.__pwned = 1</script>", "page.html")
    connection = http.client.HTTPConnection(urlsplit(closed.url).netloc, timeout=30)
    connection.request("GET", f"/gradio_api/file={quote(json.loads(answer)[0])}")
    headers = dict(connection.getresponse().getheaders())
    assert headers["content-disposition"].startswith("attachment")
    assert headers["content-type"] == "application/octet-stream"
    assert headers["x-content-type-options"] == "nosniff"
