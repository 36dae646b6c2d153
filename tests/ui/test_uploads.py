"""What visitors send is read once and then deleted, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
from gradio.utils import get_upload_folder
from playwright.sync_api import expect
from test_analysis import STATUS, fill, only, rows, sweep, tab
from tiny import trace
from visit import Site, Visit, serve

from specviz.diagnosis import diagnose
from specviz.host import Host
from specviz.trace import TraceError, dump_trace, load_trace
from specviz.ui import build
from specviz.ui.saved import SavedFiles
from specviz.ui.uploads import sent_trace, upload


def send(one: Visit, where: str, data: str, name: str = "sent.json") -> Path:
    """Choose a file to be opened; where Gradio put it on this machine."""
    payload = {"name": name, "mimeType": "application/json", "buffer": data.encode()}
    with one.page.expect_response(
        lambda answer: urlsplit(answer.url).path.endswith("/upload")
    ) as answer:
        one.page.set_input_files(f"{where} input[type=file]", payload)
    path = Path(answer.value.json()[0])
    assert path.is_relative_to(get_upload_folder())
    return path


@pytest.fixture
def sent() -> Iterator[Path]:
    """A file that lies where Gradio puts what is sent."""
    path = Path(get_upload_folder(), "0123abc", "sent.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dump_trace(trace(tokens=4)), encoding="utf-8")
    yield path
    path.unlink(missing_ok=True)
    path.parent.rmdir()


def test_a_file_that_was_sent_is_deleted_once_it_was_read(sent: Path):
    assert len(sent_trace(str(sent)).runs) == 2
    assert not sent.exists()


def test_a_file_that_cannot_be_used_is_deleted_too(sent: Path):
    sent.write_text("{}", encoding="utf-8")
    with pytest.raises(TraceError):
        sent_trace(str(sent))
    assert not sent.exists()


def test_nothing_else_is_ever_deleted(tmp_path: Path, sent: Path):
    files = SavedFiles(kept=True)
    saved = files.write("a", "specviz.json", "text")
    outside = tmp_path / "folder" / "file.json"
    outside.parent.mkdir()
    outside.write_text("text", encoding="utf-8")
    link = sent.with_name("link.json")
    link.symlink_to(outside)
    for path in (saved, outside, link, sent.parent / ".." / ".." / "x", Path(), sent.parent):
        with upload(str(path)):
            pass
    link.unlink()
    assert saved.exists()
    assert outside.exists()
    assert sent.exists()
    with pytest.raises(TraceError, match="cannot be read"):
        sent_trace(None)


def test_explore_shows_and_diagnoses_a_file_and_deletes_it(visit):
    one = visit().ready()
    recorded = trace(tokens=30, gamma=6)
    path = send(one, "#files", dump_trace(recorded))
    one.status("A recorded run is on the stage.")
    headline = diagnose(load_trace(dump_trace(recorded))).headline
    expect(one.page.locator("#diagnosis .sv-diagnosis")).to_contain_text(headline)
    assert not path.exists()
    point = diagnose(load_trace(dump_trace(recorded))).point
    one.page.get_by_role("tab", name="Theory").click()
    expect(one.page.locator(".sv-theory-last")).to_contain_text(f"measured {point.speedup:.2f}x")


def test_the_traces_tab_keeps_what_a_file_holds_and_deletes_it(visit):
    one = visit().ready()
    one.page.get_by_role("tab", name="Traces").click()
    path = send(one, "#trace-drop", dump_trace(trace("Sent here.", tokens=4)))
    expect(one.page.locator(".traces-card h4")).to_contain_text("Sent here.")
    assert not path.exists()


def test_the_page_of_recorded_runs_deletes_a_file_it_has_shown(visit):
    page = build(host=Host(gallery=True))
    try:
        one = visit(at=Site(serve(page)))
        expect(one.page.locator("#controls")).to_be_visible()
        recorded = trace(tokens=30, gamma=6)
        path = send(one, "#controls", dump_trace(recorded))
        one.status("A run from a file is on the stage.")
        headline = diagnose(load_trace(dump_trace(recorded))).headline
        expect(one.page.locator("#diagnosis .sv-diagnosis")).to_contain_text(headline)
        assert not path.exists()
    finally:
        page.close(verbose=False)


def test_a_sweep_from_a_file_can_be_saved_again_after_the_file_was_deleted(visit: Any):
    one = tab(visit, "Sweep")
    fill(one, gammas="2", limit=2, tokens=4)
    only(one, "prompt lookup")
    sweep(one, "Done: 2 of 2 runs.")
    whole, table = saved_bench(one), rows(one)
    other = tab(visit, "Sweep")
    path = send(other, "#sweep-files", whole, "specviz-sweep.json")
    expect(other.page.locator(STATUS)).to_contain_text("2 runs from a file, complete")
    assert not path.exists()
    assert rows(other) == table
    assert json.loads(saved_bench(other)) == json.loads(whole)


def saved_bench(one: Visit) -> str:
    with one.page.expect_download() as download:
        one.page.locator("button#sweep-json").click()
    return Path(download.value.path()).read_text(encoding="utf-8")
