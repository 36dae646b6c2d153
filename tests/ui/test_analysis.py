"""Diagnosis, Sweep and Theory in a real browser, on a tiny random pair."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
from playwright.sync_api import expect
from tiny import trace

from specviz import theory
from specviz.diagnosis import diagnose
from specviz.metrics import DEFINITIONS
from specviz.trace import dump_trace, load_trace

STATUS = ".sv-sweep-status"
RUNS = 17  # the column of the table


def tab(visit, name: str):
    """The page with a tab open, once its own script has mounted."""
    one = visit().ready()
    one.page.get_by_role("tab", name=name).click()
    elem = {"Sweep": "#sweep-results", "Theory": "#theory"}[name]
    expect(one.page.locator(f"{elem} [data-mounted], {elem}[data-mounted]").first).to_be_attached()
    return one


def fill(one, **values: object) -> None:
    for name, value in values.items():
        box = one.page.locator(f"#sweep-{name} input, #sweep-{name} textarea").first
        one._fill(box, str(value))


def only(one, name: str) -> None:
    """Untick every drafter but one."""
    boxes = one.page.locator("#sweep-drafters label")
    for i in range(boxes.count()):
        box = boxes.nth(i).locator("input")
        box.set_checked(boxes.nth(i).inner_text().strip() == name)


def sweep(one, words: str = "Done") -> None:
    one.page.locator("button#sweep-run").click()
    expect(one.page.locator(STATUS)).to_contain_text(words, timeout=60_000)


def rows(one) -> list[list[str]]:
    return one.page.locator(".sv-sweep-table tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent))"
    )


# --- diagnosis -----------------------------------------------------------------------------


def test_the_recorded_run_is_diagnosed_at_first_paint(visit, first: Path):
    one = visit().ready()
    found = diagnose(load_trace(first.read_bytes()))
    panel = one.page.locator("#diagnosis .sv-diagnosis")
    expect(panel).to_contain_text(found.headline)
    expect(panel.locator(".sv-limit")).to_have_count(len(found.limits))


def test_every_run_is_diagnosed_and_its_advice_is_measured_by_one_press(visit):
    one = visit().ready().settings(max_new_tokens=60)
    one._fill(one.page.locator("#gamma input[type=number]"), "12")
    one.finish()
    panel = one.page.locator("#diagnosis .sv-diagnosis")
    expect(panel).to_contain_text(f"{one.model('model.done.figures')['speedup']:.2f}x")
    button = one.page.locator("#diagnosis-follow")
    if button.is_visible():
        gamma = int(button.inner_text().rpartition(" ")[2])
        button.click()
        expect(panel).to_contain_text(f"The advice was gamma {gamma}.", timeout=60_000)
        assert one.model("model.start.settings.gamma") == gamma
        assert one.model("model.start.settings.max_new_tokens") == 60
        expect(panel).to_contain_text("Measured:")


def test_drafters_that_were_tried_on_one_prompt_are_compared(visit):
    one = visit().ready().settings(max_new_tokens=40)
    for name in ("draft model", "prompt lookup"):
        one.page.locator("#drafter label", has_text=name).click()
        one.finish()
        speedup = one.model("model.done.figures")["speedup"]
        expect(one.page.locator("#diagnosis .sv-diagnosis")).to_contain_text(f"{speedup:.2f}x")
    remark = one.page.locator("#diagnosis .sv-diagnosis-remark")
    expect(remark).to_contain_text("Measured on this prompt so far:")
    expect(remark).to_contain_text(f"prompt lookup, gamma 6: {speedup:.2f}x")
    one._fill(one.page.locator("#prompt textarea"), "Something else")
    one.finish()
    expect(remark).to_have_count(0)


def test_a_trace_that_is_opened_is_diagnosed(visit):
    one = visit().ready()
    opened = trace(tokens=30, gamma=6)
    one.open_trace(dump_trace(opened))
    headline = diagnose(load_trace(dump_trace(opened))).headline
    expect(one.page.locator("#diagnosis .sv-diagnosis")).to_contain_text(headline)


# --- sweep ---------------------------------------------------------------------------------


def test_a_sweep_fills_table_and_figures_and_saves_both_files(visit, tmp_path: Path):
    one = tab(visit, "Sweep")
    fill(one, gammas="2, 3", limit=2, tokens=8)
    only(one, "draft model")
    sweep(one, "Done: 4 of 4 runs.")
    table = rows(one)
    assert [row[:2] for row in table] == [["draft model, tiny draft", g] for g in ("2", "3")]
    expect(one.page.locator(".sv-sweep-figures .js-plotly-plot")).to_have_count(4)
    expect(one.page.locator(".sv-sweep-advice")).to_contain_text("measured")
    for button, name in (("sweep-csv", "table.csv"), ("sweep-json", "bench.json")):
        with one.page.expect_download() as saved:
            one.page.locator(f"button#{button}").click()
        saved.value.save_as(tmp_path / name)
    cells = list(csv.DictReader((tmp_path / "table.csv").open(encoding="utf-8", newline="")))
    assert [f"{float(row['speedup']):.2f}x" for row in cells[:2]] == [row[2] for row in table]
    bench = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))
    assert bench["complete"] is True
    assert [f"{row['speedup']:.2f}x" for row in bench["rows"]] == [row[2] for row in table]
    payload = {"name": "b.json", "mimeType": "application/json"}
    data = (tmp_path / "bench.json").read_bytes()
    one.page.reload()
    one.ready().page.get_by_role("tab", name="Sweep").click()
    one.page.set_input_files("#sweep-files input[type=file]", payload | {"buffer": data})
    expect(one.page.locator(STATUS)).to_contain_text("4 runs from a file, complete")
    assert rows(one) == table


def test_stop_keeps_what_is_done_and_run_goes_on_with_it(visit):
    one = tab(visit, "Sweep")
    fill(one, gammas="2", limit=7, tokens=100)
    only(one, "prompt lookup")
    one.page.locator("button#sweep-run").click()
    begun = re.compile("^[1-5] of 7 runs")
    expect(one.page.locator(STATUS)).to_contain_text(begun, timeout=60_000)
    one.page.locator("button#sweep-stop").click()
    expect(one.page.locator(STATUS)).to_contain_text("Stopped after")
    made = one.page.locator(STATUS).inner_text().split()[2]
    assert 1 <= int(made) < 7
    assert rows(one)[0][RUNS] == made
    sweep(one, "Done: 7 of 7 runs.")
    assert rows(one)[0][RUNS] == "7"


def test_a_column_sorts_the_table(visit):
    one = tab(visit, "Sweep")
    fill(one, gammas="2, 3", limit=1, tokens=6)
    only(one, "draft model")
    sweep(one)
    one.page.get_by_role("button", name="Speedup", exact=True).click()
    speedups = [float(row[2].rstrip("x")) for row in rows(one)]
    assert speedups == sorted(speedups, reverse=True)
    heading = one.page.locator(".sv-sweep-table th[aria-sort=descending]")
    expect(heading).to_have_text("Speedup")
    expect(heading.locator("button")).to_have_attribute("title", DEFINITIONS["speedup"])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"gammas": "2, x"}, "Gammas: type whole numbers"),
        ({"gammas": "99"}, "gamma must be"),
        ({"limit": "-1"}, "Prompts: type how many"),
    ],
)
def test_an_input_that_cannot_be_used_is_named(visit, values, words):
    one = tab(visit, "Sweep")
    fill(one, **values)
    sweep(one, words)
    expect(one.page.locator(STATUS)).to_have_attribute("data-kind", "error")
    expect(one.page.locator("button#sweep-run")).to_be_enabled()


def test_pasted_prompts_are_measured_and_faulty_files_name_their_line(visit):
    one = tab(visit, "Sweep")
    fill(one, gammas="2", limit=0, tokens=4)
    only(one, "prompt lookup")
    one.page.locator("#sweep-source label", has_text="pasted").click()
    box = one.page.locator("#sweep-pasted textarea")
    box.fill("<img src=x onerror=1>\nsecond")
    box.blur()
    sweep(one, "Done: 2 of 2 runs.")
    one.page.locator("#sweep-source label", has_text="file").click()
    lines = b'{"prompt": "one", "kind": "<b>x</b>"}\n{}\n'
    payload = {"name": "p.jsonl", "mimeType": "application/json", "buffer": lines}
    with one.page.expect_file_chooser() as asked:
        one.page.locator("#sweep-prompt-file button").first.click()
    asked.value.set_files(payload)
    expect(one.page.locator("#sweep-prompt-file")).to_contain_text("p.jsonl")
    sweep(one, "line 2: ")
    one.page.locator("#sweep-bad-lines label", has_text="skip").click()
    sweep(one, "Done: 1 of 1 runs.")
    expect(one.page.locator(".sv-sweep-figures")).to_contain_text("<b>x</b>")


def test_a_file_that_is_no_sweep_is_refused_and_says_why(visit):
    one = tab(visit, "Sweep")
    payload = {"name": "b.json", "mimeType": "application/json", "buffer": b"{}"}
    one.page.set_input_files("#sweep-files input[type=file]", payload)
    expect(one.page.locator(STATUS)).to_contain_text("cannot be opened")


# --- theory --------------------------------------------------------------------------------


def test_sliders_move_curves_and_readings_at_once(visit):
    one = tab(visit, "Theory")
    requests = []
    one.page.on("request", lambda request: requests.append(request.url))
    for name, value in {"alpha": "0.8", "gamma": "5", "c": "0.1", "slope": "0.02"}.items():
        one.page.locator(f"input.sv-theory-{name}").fill(value)
    expected = theory.speedup_on_line(0.8, 5, 0.1, 0.02)
    expect(one.page.locator(".sv-theory-reading-expected")).to_have_text(f"{expected:.2f}x")
    best = theory.best_gamma(0.8, 0.1, 0.02)
    at_best = theory.speedup_on_line(0.8, best, 0.1, 0.02)
    expect(one.page.locator(".sv-theory-reading-best")).to_have_text(f"{best} ({at_best:.2f}x)")
    even = theory.break_even_alpha(5, 0.1, theory.verify_cost(6, 0.02))
    expect(one.page.locator(".sv-theory-reading-even")).to_have_text(f"{even:.2f}")
    faster = theory.speedup_on_line(0.8, 5, 0.05, 0.02)
    expect(one.page.locator(".sv-theory-reading-faster")).to_have_text(f"{faster:.2f}x")
    assert [url for url in requests if not url.startswith("data:")] == []


def test_the_run_on_explore_stands_among_the_curves_with_its_interval(visit, first: Path):
    one = tab(visit, "Theory")
    point = diagnose(load_trace(first.read_bytes())).point
    expect(one.page.locator(".sv-theory-last")).to_contain_text(f"measured {point.speedup:.2f}x")
    plot = one.page.locator(".sv-theory-figures .js-plotly-plot").first
    expect(plot).to_be_visible()
    shown = plot.evaluate(
        "(plot) => { const t = plot.data.find((t) => t.name.includes('measured'));"
        " return [t.x[0], t.y[0], t.error_y.arrayminus[0]]; }"
    )
    low = point.speedup_interval[0]
    assert shown == [point.gamma, pytest.approx(point.speedup), pytest.approx(point.speedup - low)]


def test_a_run_that_was_refused_leaves_the_tabs_not_yet_visited_as_they_are(visit):
    one = visit().ready()
    one._fill(one.page.locator("#prompt textarea"), "")
    one.button("run").click()
    one.status("The prompt is empty.")
    one.page.get_by_role("tab", name="Theory").click()
    expect(one.page.locator(".sv-theory-published tr")).to_have_count(16)


def test_published_results_are_listed_with_their_source(visit):
    one = tab(visit, "Theory")
    table = one.page.locator(".sv-theory-published tr")
    expect(table).to_have_count(16)
    expect(table.nth(1)).to_contain_text("3.16x")
    link = table.nth(1).get_by_role("link")
    expect(link).to_have_attribute("href", "https://arxiv.org/abs/2211.17192")
    expect(table.last.get_by_role("cell").nth(7)).to_have_text("\u2014")


@pytest.mark.parametrize("kind", ["PNG", "SVG"])
def test_a_figure_is_saved_without_any_network(visit, tmp_path: Path, kind: str):
    one = tab(visit, "Theory")
    expect(one.page.locator(".sv-theory-figures .js-plotly-plot").first).to_be_visible()
    with one.page.expect_download() as saved:
        one.page.get_by_role("button", name=f"Save as {kind}: Speedup by draft length").click()
    path = tmp_path / saved.value.suggested_filename
    saved.value.save_as(path)
    assert path.name == f"specviz-speedup-by-draft-length.{kind.lower()}"
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG" if kind == "PNG" else b"<svg")
    if kind == "SVG":  # what is drawn is said in the file itself
        assert b"theorem 3.8 of arXiv 2211.17192" in data


@pytest.mark.parametrize("name", ["Sweep", "Theory"])
def test_on_a_phone_nothing_is_wider_than_the_screen(visit, name: str):
    one = visit(viewport={"width": 390, "height": 844}).ready()
    one.page.get_by_role("tab", name=name).click()
    expect(one.page.locator(".sv-sweep, .sv-theory").locator("visible=true")).to_be_visible()
    if name == "Theory":
        expect(one.page.locator(".sv-theory-figures .js-plotly-plot").last).to_be_attached()
    assert one.page.evaluate("document.documentElement.scrollWidth") <= 390
