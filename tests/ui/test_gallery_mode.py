"""A host that shows recorded runs only: no torch, no models, the rest of the page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
from playwright.sync_api import expect
from visit import MODEL, Site, Visit, serve

from specviz.gallery import exhibits
from specviz.host import Host
from specviz.ui import build

ROOT = Path(__file__).parents[2]
WITHOUT_TORCH = """
import runpy
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {REFUSED}:
            raise ImportError(f"{name} is not installed here")

sys.meta_path.insert(0, Refuse())
import gradio

gradio.Blocks.launch = lambda page, **options: print("launched", len(page.blocks) > 50)
runpy.run_path("app.py", run_name="__main__")
"""
REFUSED = ["torch", "transformers", "accelerate", "safetensors", "gguf", "psutil", "tokenizers"]


def start(**variables: str) -> subprocess.CompletedProcess[str]:
    """``python app.py`` up to its launch, where nothing but Gradio and plotly is installed."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH.replace("{REFUSED}", repr(REFUSED))],
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_page_starts_without_torch_and_transformers():
    done = start(SPECVIZ_GALLERY="1")
    assert done.stdout.strip() == "launched True", done.stderr


def test_a_wrong_variable_ends_the_start_in_one_sentence():
    done = start(SPECVIZ_GALLERY="yes")
    assert done.returncode != 0
    assert done.stderr.strip() == (
        "specviz cannot start: SPECVIZ_GALLERY takes 1 for yes or 0 for no, not 'yes'."
    )


@pytest.fixture(scope="module")
def gallery() -> Iterator[Site]:
    page = build(host=Host(gallery=True))
    yield Site(serve(page))
    page.close(verbose=False)


@pytest.fixture
def visitor(visit: Any, gallery: Site) -> Visit:
    one: Visit = visit("/", at=gallery)
    expect(one.page.locator("[data-mounted] .sv-stage")).to_be_visible()
    return one


def prompt(one: Visit) -> str:
    """The prompt of the run on the stage."""
    return one.model("model.start?.prompt")


def shows(one: Visit, text: str) -> None:
    """Wait until the run of this prompt is on the stage."""
    one.page.wait_for_function(f"{MODEL}.start?.prompt === {json.dumps(text)}")


def choose(one: Visit, title: str) -> None:
    one.page.locator("#recorded").get_by_role("radio", name=title, exact=True).click()


def test_a_recorded_run_is_on_the_stage_and_nothing_can_be_run(visitor):
    assert prompt(visitor)
    expect(visitor.page.locator("#status")).to_contain_text("This host shows recorded runs only")
    for name in ("run", "step", "stop", "sweep-run", "prove-exact", "keep"):
        expect(visitor.button(name)).to_have_count(0)


def test_choosing_another_run_shows_it_with_its_diagnosis_and_its_point(visitor):
    slower = next(one for one in exhibits() if one.title == "Slower than the target alone")
    choose(visitor, slower.title)
    shows(visitor, slower.prompt)
    expect(visitor.page.locator("#diagnosis")).to_contain_text("Drafting did not pay here")
    visitor.page.get_by_role("tab", name="Theory").click()
    expect(visitor.page.locator("#theory")).to_contain_text("gamma 16")


def test_a_run_from_a_file_is_shown_and_a_bad_file_is_refused(visitor):
    other = exhibits()[1]
    visitor.page.set_input_files("#controls input[type=file]", other.path)
    shows(visitor, other.prompt)
    visitor.status("A run from a file is on the stage.")
    expect(visitor.page.locator("#recorded input:checked")).to_have_count(0)
    bad = {"name": "bad.json", "mimeType": "application/json", "buffer": b"{}"}
    visitor.page.set_input_files("#controls input[type=file]", bad)
    visitor.status("This trace cannot be opened")
    shows(visitor, other.prompt)


def test_what_needs_a_model_says_why_it_is_not_here(visitor):
    page = visitor.page
    page.get_by_role("tab", name="Sweep").click()
    expect(page.get_by_text("Not run here:")).to_be_visible()
    page.get_by_role("tab", name="Lossless").click()
    expect(page.get_by_text("Not run here:")).to_have_count(4)
    expect(page.locator("#law .law-verdict")).to_contain_text("Together that is p")
    page.get_by_role("radio", name="wrong: no residual").click()
    expect(page.locator("#law .law-verdict")).not_to_contain_text("Together that is p")


def test_traces_are_listed_compared_and_taken_along(visitor):
    page = visitor.page
    page.get_by_role("tab", name="Traces").click()
    expect(page.locator(".traces-row")).to_have_count(len(exhibits()))
    expect(page.locator("#traces-left .sv-tok").first).to_be_attached()
    expect(page.get_by_role("button", name="Link", exact=True)).to_have_count(0)
    page.locator(".traces-row").nth(2).get_by_role("button", name="Compare").click()
    expect(page.locator("#traces-right .sv-tok").first).to_be_attached()


def test_programs_can_have_a_trace_read_and_nothing_else(gallery):
    gradio_client = pytest.importorskip("gradio_client")
    client = gradio_client.Client(gallery.url, verbose=False)
    assert list(client.view_api(return_format="dict")["named_endpoints"]) == ["/load_trace"]
    trace = exhibits()[0].path.read_text(encoding="utf-8")
    assert client.predict(trace, api_name="/load_trace")["speedup"] > 1
