"""What a trace can be exported as: complete, inert, and of a bounded size."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from specviz.cli import main
from specviz.export import stream
from specviz.export.bundle import BundleError, bundle_script, bundle_style
from specviz.export.page import compact, html_page, inert
from specviz.export.palette import palette
from specviz.export.png import PictureError, png_picture
from specviz.export.svg import svg_picture
from specviz.export.table import COLUMNS, csv_table
from specviz.race import replay_events
from specviz.trace import dump_trace, load_trace

ROOT = Path(__file__).parents[2]
TRACES = ROOT / "assets" / "traces"
ATTACK = "</script><script>alert(1)</script>\u2028\x00\x1b[31m=1+1&\u202e"


@pytest.fixture(scope="module")
def sampled():
    return load_trace((TRACES / "sampling.json").read_bytes())


@pytest.fixture(scope="module")
def hostile(sampled):
    """A trace whose every text is an attack on the format it goes into."""
    run = sampled.runs[0]

    def arm(token):
        return token and replace(token, text=ATTACK, label=ATTACK, source="=cmd()")

    rounds = tuple(
        replace(r, drafted=tuple(map(arm, r.drafted)), added=arm(r.added)) for r in run.rounds[:4]
    )
    pair = replace(sampled.pair, name=ATTACK, target=ATTACK)
    runs = (replace(run, rounds=rounds, drafter=ATTACK),)
    return replace(sampled, pair=pair, prompt=ATTACK, note=ATTACK, runs=runs)


# --- the bundle ----------------------------------------------------------------------------


def modules(folder, **sources):
    for name, source in sources.items():
        (folder / f"{name}.js").write_text(source, encoding="utf-8")
    return folder / "entry.js"


def test_modules_become_one_script_in_the_order_of_their_need(tmp_path):
    entry = modules(
        tmp_path,
        entry='import { b as c } from "./b.js";\nimport {\n  A,\n  f,\n} from "./a.js";\n'
        "globalThis.result = [A, f(), c];\n",
        b='import { A } from "./a.js";\n\nexport const b = A + 1;\n',
        a="// export const x = 1;\nexport const A = 1;\nexport function f() {\n  return 5;\n}\n"
        "export async function g() {}\n",
    )
    script = bundle_script(entry)
    assert script.count("const module_a ") == 1
    assert script.index("module_a =") < script.index("module_b =") < script.index("module_entry =")
    assert "return { A, f, g };" in script
    assert "const { b: c } = module_b;" in script
    assert not re.search(r"^(import|export) ", script, re.MULTILINE)


@pytest.mark.parametrize(
    "source, message",
    [
        ('import x from "./a.js";', "import x from"),
        ('import "./a.js";', "no form this bundler knows"),
        ('import * as a from "./a.js";', "no form this bundler knows"),
        ("export default 1;", "export default 1"),
        ("export { a };", "no form this bundler knows"),
        ('const a = import("./a.js");', "no form this bundler knows"),
        ('import { a as b c } from "./a.js";', "no form this bundler knows"),
        ('import { a } from "./missing.js";', "missing.js cannot be read"),
        (
            'import { e } from "./entry.js";\nexport const e = 1;',
            "in a circle: entry.js -> entry.js",
        ),
        ('const a = "</script>";', "would end the inline script"),
    ],
)
def test_what_the_bundler_does_not_know_is_refused(tmp_path, source, message):
    (tmp_path / "a.js").write_text("export const a = 1;\n", encoding="utf-8")
    with pytest.raises(BundleError, match=re.escape(message)):
        bundle_script(modules(tmp_path, entry=source + "\n"))


def test_every_module_of_the_page_can_be_bundled():
    script = bundle_script(ROOT / "assets" / "js" / "main.js")
    assert "module_stage" in script


def test_style_sheets_are_put_where_they_are_imported():
    style = bundle_style(ROOT / "assets" / "css" / "specviz.css")
    assert "@import" not in style
    assert ".sv-stage" in style


# --- the page ------------------------------------------------------------------------------


def parts(page):
    """The inline script, the style, and the data of a page."""
    script = page.rsplit("<script>", 1)[1].rsplit("</script>", 1)[0]
    style = page.split("<style>", 1)[1].split("</style>", 1)[0]
    data = re.search(r'<script type="application/json" id="run">(.*?)</script>', page, re.DOTALL)
    return script, style, json.loads(data[1])


def test_the_page_is_small_and_needs_nothing_but_itself(sampled):
    page = html_page(sampled)
    data = re.search(r'id="run">(.*?)</script>', page, re.DOTALL)[1]
    fixed = len(page.encode("utf-8")) - len(data.encode("utf-8"))
    assert 100_000 < fixed <= 400_000
    assert len(data.encode("utf-8")) <= 1.2 * len(dump_trace(sampled).encode("utf-8"))
    assert not re.search(r"""(?:src|href)\s*=\s*["']""", page.split("<script>")[0])
    assert "@import" not in page
    assert "@font-face" not in page


def test_the_policy_allows_the_page_s_own_script_and_style_alone(sampled):
    page = html_page(sampled)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy
    script, style, _ = parts(page)
    for kind, text in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_the_data_of_the_page_are_the_events_of_the_trace(sampled):
    _, _, data = parts(html_page(sampled))
    events = list(replay_events(sampled))
    assert len(data["events"]) == len(events)
    for shown, event in zip(data["events"], events, strict=True):
        if event["e"] != "round":
            assert shown == json.loads(json.dumps(event))
            continue
        assert shown["round"] == event["round"]
        named = dict(zip(data["figures"], shown["figures"], strict=True))
        assert named.keys() == event["figures"].keys()
        for name, value in event["figures"].items():
            assert named[name] == (value if value is None else pytest.approx(value, rel=1e-5))


def test_no_text_of_a_trace_can_leave_its_place_in_the_page(hostile):
    page = html_page(hostile)
    assert "<script>alert" not in page
    assert page.count("<script") == 3
    assert "\u2028" not in page
    _, _, data = parts(page)
    assert data["events"][0]["prompt"] == ATTACK


def test_figures_are_named_once(sampled):
    packed = compact(replay_events(sampled))
    assert packed["figures"][0] == "tokens"
    assert len(inert(packed)) < 0.95 * len(inert(list(replay_events(sampled))))


# --- pictures ------------------------------------------------------------------------------


def svg_texts(picture):
    root = ElementTree.fromstring(picture)
    return root, [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]


def test_the_svg_shows_every_token_and_every_fate(sampled):
    root, texts = svg_texts(svg_picture(sampled))
    shown = "".join(texts)
    for round_ in sampled.runs[0].rounds:
        for token in round_.drafted:
            assert token.text.strip() in shown or "\n" in token.text
    assert {"accepted", "rejected", "discarded", "resampled", "bonus"} <= set(texts)
    colours = palette()
    fills = {element.get("fill") for element in root.iter()}
    fates = ("accepted", "bonus", "rejected")
    assert {colours[f"{fate}-tint"] for fate in fates} <= fills


def test_the_svg_holds_no_script_no_link_and_no_character_xml_forbids(hostile):
    root, texts = svg_texts(svg_picture(hostile))
    names = {element.tag.rsplit("}", 1)[1] for element in root.iter()}
    assert names <= {"svg", "title", "rect", "path", "text"}
    assert not any("\x1b" in text or "\u202e" in text or "\x00" in text for text in texts)


def test_pieces_never_leave_the_lines_and_no_text_is_lost(sampled):
    for lane, run in zip(stream.lanes(sampled, columns=40), sampled.runs, strict=True):
        assert max(piece.column + piece.width for piece in lane.pieces) <= 40
        assert max(piece.line for piece in lane.pieces) < lane.lines
        shown = "".join(piece.text for piece in lane.pieces)
        wanted = "".join(
            token.text or token.label
            for round_ in run.rounds
            for token in (*round_.drafted, *filter(None, [round_.added]))
        )
        squeezed = shown.replace(stream.RETURN, "").replace(" ", "")
        assert squeezed == wanted.replace("\n", "").replace(" ", "")


@pytest.mark.parametrize("text, width", [("abc", 3), ("日本", 4), ("👍", 2), ("e\u0301", 1)])
def test_wide_characters_take_two_cells_and_marks_none(text, width):
    assert stream.cells(text) == width


def test_what_draws_nothing_is_drawn():
    assert stream.visible("a\tb\x07\u202e\x7f") == "a\u21e5b\u2407\u00b7\u00b7"


def test_the_heading_gives_what_was_measured_and_a_dash_for_what_was_not(sampled):
    assert re.match(r"\d\.\d\dx measured", stream.heading(sampled)[1])
    alone = replace(sampled, runs=sampled.runs[:1])
    assert stream.heading(alone)[1].startswith("\u2014x measured")


def test_the_png_is_a_picture_of_the_stream(sampled):
    image = Image.open(io.BytesIO(png_picture(sampled)))
    colours = set(image.convert("RGB").getcolors(1_000_000) and _colours(image))
    for name in ("accepted", "rejected", "resampled", "accepted-tint"):
        assert palette()[name] in colours, name
    dark = Image.open(io.BytesIO(png_picture(sampled, dark=True)))
    assert palette(dark=True)["surface"] in _colours(dark)


def _colours(image):
    found = image.convert("RGB").getcolors(1_000_000)
    return {"#{:02x}{:02x}{:02x}".format(*colour) for _, colour in found}


def test_a_run_too_long_for_a_png_says_what_to_do(sampled):
    run = sampled.runs[0]
    rounds = tuple(replace(run.rounds[i % 40], index=i) for i in range(9_000))
    with pytest.raises(PictureError, match="export it as SVG or HTML"):
        png_picture(replace(sampled, runs=(replace(run, rounds=rounds),)))


# --- the table -----------------------------------------------------------------------------


def test_the_table_has_a_line_a_token_and_the_kept_ones_make_the_text(sampled):
    rows = list(csv.DictReader(io.StringIO(csv_table(sampled))))
    assert tuple(rows[0]) == COLUMNS
    own = [row for row in rows if row["lane"] == "speculative" and row["kept"] == "1"]
    assert [int(row["position"]) for row in own] == list(range(len(own)))
    assert [int(row["id"]) for row in own] == [t.id for t in sampled.runs[0].tokens]
    texts = [json.loads(row["text"]) for row in own]
    assert "".join(texts) == sampled.runs[0].text
    rejected = next(row for row in rows if row["fate"] == "rejected")
    assert rejected["position"] == ""
    assert 0 <= float(rejected["u"]) <= 1


def test_no_cell_of_the_table_is_a_formula(hostile):
    for row in csv.reader(io.StringIO(csv_table(hostile))):
        assert not any(cell.startswith(("=", "+", "@", "\t")) for cell in row)
        assert not any("\n" in cell for cell in row)


# --- the command ---------------------------------------------------------------------------


def test_the_command_writes_every_format_and_loads_no_model(tmp_path):
    names = ("html", "svg", "png", "csv", "ansi")
    wanted = [part for name in names for part in (f"--{name}", str(tmp_path / f"a.{name}"))]
    code = (
        "import sys; from specviz.cli import main;"
        f"status = main(['export', {str(TRACES / 'code.json')!r}, *{wanted!r}]);"
        "assert not {'torch', 'transformers', 'gradio'} & set(sys.modules), 'heavy import';"
        "sys.exit(status)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
    assert all((tmp_path / f"a.{name}").stat().st_size > 500 for name in names)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"a.{n}" for n in names)


def test_ansi_on_standard_output_is_coloured_and_cannot_steer_the_terminal(
    tmp_path, hostile, capfdbinary
):
    file = tmp_path / "hostile.json"
    file.write_text(dump_trace(hostile), encoding="utf-8")
    assert main(["export", str(file), "--ansi", "-"]) == 0
    out = capfdbinary.readouterr().out.decode("utf-8")
    assert "\x1b[32;4m" in out or "\x1b[31;9m" in out
    assert "\\x1b[31m=1+1" in out
    assert not re.search(r"\x1b\[31m=1", out)


@pytest.mark.parametrize(
    "arguments, message, status",
    [
        ([], "name at least one of --html", 2),
        (["--svg", "/nonexistent/a.svg"], "cannot write", 1),
    ],
)
def test_what_cannot_be_exported_says_why(capsys, arguments, message, status):
    assert main(["export", str(TRACES / "code.json"), *arguments]) == status
    assert message in capsys.readouterr().err


def test_a_broken_trace_is_refused_naming_the_place(tmp_path, capsys):
    file = tmp_path / "broken.json"
    file.write_text('{"specviz_trace": 1, "pair": 5}', encoding="utf-8")
    assert main(["export", str(file), "--csv", "-"]) == 2
    assert "the key 'machine' is missing" in capsys.readouterr().err
