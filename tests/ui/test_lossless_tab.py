"""The Lossless tab in a real browser: bars that can be dragged, and three proofs."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
import torch
from playwright.sync_api import expect

from specviz.export.bundle import bundle_script
from specviz.lossless.cases import cases
from specviz.lossless.enumeration import law_of
from specviz.lossless.variants import RIGHT, WRONG
from specviz.sampling import Guess
from specviz.ui.elements import ASSETS

TOKENS = ["sea", "fog", "lamp", "gull", "rock"]
LAWS = """(cases) => {
  %s
  const { firstTokenLaw, VARIANT_NAMES } = module_losslesslaw;
  return [VARIANT_NAMES, cases.map(([name, p, q]) => firstTokenLaw(name, p, q).written)];
}"""


@pytest.fixture
def tab(visit):
    one = visit().ready()
    one.page.get_by_role("tab", name="Lossless").click()
    expect(one.page.locator("#law .law-bar").first).to_be_visible()
    return one


def first_token_law(variant, p, q):
    """The law of a round's first token by the program's own functions, two guesses a round."""
    laws = torch.tensor([p, p, p], dtype=torch.float64)
    law = torch.tensor(q, dtype=torch.float64)

    def play(chance):
        drafting = variant.drafting(chance)
        ids = [drafting.choose(law) for _ in range(2)]
        guesses = [Guess(token, "x", law, q[token]) for token in ids]
        verdict = variant.verify(laws, guesses, chance)
        return ids[0] if verdict.accepted else verdict.added

    found, _ = law_of(play)
    return [found.get(token, 0.0) for token in range(len(p))]


def random_law(generator):
    weights = [generator.random() ** 2 + 0.01 for _ in range(4)]
    return [weight / sum(weights) for weight in weights]


def test_the_browser_computes_the_same_laws_as_the_program(tab):
    generator = random.Random(5)
    variants = (RIGHT, *WRONG)
    cases = [
        (variant, random_law(generator), random_law(generator))
        for variant in variants
        for _ in range(4)
    ]
    asked = [[variant.name, p, q] for variant, p, q in cases]
    laws = LAWS % bundle_script(ASSETS / "js" / "losslesslaw.js")
    names, found = tab.page.evaluate(laws, asked)
    assert names == [variant.name for variant in variants]
    for (variant, p, q), written in zip(cases, found, strict=True):
        assert written == pytest.approx(first_token_law(variant, p, q), abs=1e-12), variant.name


class Law:
    """The two laws that can be dragged, and what the page says of them."""

    def __init__(self, page):
        self.page = page

    def bar(self, which, token):
        return self.page.get_by_role("slider", name=f"{which} of {token}", exact=True)

    def values(self, which):
        """A law as the bars have it, to three decimals."""
        bars = self.page.locator(f"#law [role=slider][aria-label^='{which} of ']").all()
        return [float(bar.get_attribute("aria-valuenow")) for bar in bars]

    def figures(self):
        """What stands under the bars: accepted, the residual, the sum, the largest difference."""
        return self.page.locator(".law-figures dd").all_inner_texts()

    def drag(self, which, token, heights, look):
        """Take a bar with the mouse and move it to each of ``heights``, shares of the drawing's;
        ``look()`` at what the page says before it is let go."""
        box = self.bar(which, token).bounding_box()
        x, mouse = box["x"] + box["width"] / 2, self.page.mouse
        mouse.move(x, box["y"] + box["height"] / 2)
        mouse.down()
        for height in heights:
            mouse.move(x, box["y"] + box["height"] * (1 - height), steps=3)
            look()
        mouse.up()


@pytest.fixture
def law(tab):
    return Law(tab.page)


def agrees_with_the_formulas(law):
    """What the page says of the bars as they stand is what the formulas make of their values."""
    p, q = law.values("p"), law.values("q")
    assert sum(p) == pytest.approx(1, abs=0.003)
    assert sum(q) == pytest.approx(1, abs=0.003)
    overlap = sum(map(min, p, q))
    accepted, left, total, gap = law.figures()
    assert float(accepted) == pytest.approx(overlap, abs=0.011)
    assert total == "1.000"
    assert gap == "none, to 12 decimals"
    if left == "nothing":
        assert overlap > 0.99
        return
    share, _, named = left.partition(": ")
    assert float(share) == pytest.approx(1 - overlap, abs=0.011)
    parts = dict(part.rsplit(" ", 1) for part in named.split(", "))
    for token, here, there in zip(TOKENS, p, q, strict=True):
        expected = max(here - there, 0) / (1 - overlap)
        assert float(parts.get(token, 0)) == pytest.approx(expected, abs=0.02), token


@pytest.mark.parametrize("which, token", [("q", "lamp"), ("p", "sea")])
def test_dragging_a_bar_keeps_acceptance_residual_and_sum_exact_all_the_way(law, which, token):
    place, seen = TOKENS.index(token), []

    def look():
        agrees_with_the_formulas(law)
        seen.append(law.values(which)[place])

    law.drag(which, token, [0.75, 0.5, 0.2], look)
    assert seen == sorted(seen, reverse=True)
    assert seen[0] > seen[2] + 0.3
    law.page.mouse.move(5, 5)
    assert law.values(which)[place] == seen[-1], "it still follows the mouse after it was let go"


def test_a_bar_dragged_out_of_the_drawing_stops_at_its_ends(law):
    law.drag("p", "fog", [1.4], lambda: agrees_with_the_formulas(law))
    assert law.values("p") == [0, 1, 0, 0, 0]
    law.drag("p", "fog", [-0.4], lambda: agrees_with_the_formulas(law))
    assert law.values("p")[1] == 0


@pytest.mark.parametrize("which", ["p", "q"])
def test_every_key_moves_a_bar_and_the_law_stays_exact(law, which):
    bar, place = law.bar(which, "gull"), TOKENS.index("gull")
    bar.focus()
    start = law.values(which)[place]
    for key, value in (
        ("ArrowUp", start + 0.02),
        ("ArrowLeft", start),
        ("PageUp", start + 0.1),
        ("PageDown", start),
        ("End", 1),
        ("Home", 0),
    ):
        bar.press(key)
        assert law.values(which)[place] == pytest.approx(value, abs=0.0011), key
        agrees_with_the_formulas(law)


@pytest.mark.parametrize("variant", WRONG, ids=lambda variant: variant.name)
def test_a_wrong_variant_breaks_the_visible_law_by_what_the_program_finds(law, variant):
    page = law.page
    law.drag("q", "rock", [0.5], lambda: None)
    page.get_by_label(f"wrong: {variant.name}").check()
    expect(page.locator(".law-verdict")).to_contain_text("no longer the target")
    expect(page.locator(".law-verdict")).to_have_attribute("data-holds", "false")
    p, q = law.values("p"), law.values("q")
    written = first_token_law(variant, p, [value / sum(q) for value in q])
    gap = max(abs(value - wanted) for value, wanted in zip(written, p, strict=True))
    assert gap > 0.02
    assert float(law.figures()[3]) == pytest.approx(gap, abs=0.01)
    expect(page.locator(".law-off").first).to_be_attached()
    page.get_by_label("right", exact=True).check()
    expect(page.locator(".law-verdict")).to_have_attribute("data-holds", "true")
    agrees_with_the_formulas(law)


def test_the_exact_proof_holds_and_fails_with_a_wrong_variant(tab):
    page = tab.page
    page.locator("button#prove-exact").click()
    status = page.locator("#proof-exact .proof-status")
    expect(status).to_contain_text(f"Holds: in all {len(cases())} cases", timeout=120_000)
    page.get_by_label("wrong: argmax draft").check()
    expect(status).to_be_hidden()
    page.locator("button#prove-exact").click()
    expect(status).to_contain_text("Broken in", timeout=120_000)


def test_the_sampled_proof_says_what_it_could_have_seen(tab):
    page = tab.page
    for name, value in (("samples", "60"), ("compared", "1")):
        page.locator(f"#{name} input[type=number]").fill(value)
        page.locator(f"#{name} input[type=number]").blur()
    page.locator("button#prove-sampled").click()
    facts = page.locator("#proof-sampled .proof-facts")
    expect(facts).to_contain_text("60 continuations in each arm", timeout=120_000)
    expect(facts).to_contain_text("with probability 0.8")


def test_the_greedy_proof_is_equal_in_float32(tab):
    page = tab.page
    page.locator("button#prove-greedy").click()
    status = page.locator("#proof-greedy .proof-status")
    expect(status).to_contain_text("Equal: every drafter wrote", timeout=120_000)


def test_an_empty_prompt_is_named(tab):
    page = tab.page
    page.locator("#greedy-prompt textarea").fill(" ")
    page.locator("button#prove-greedy").click()
    expect(page.locator("#proof-greedy .proof-status")).to_contain_text("The prompt is empty.")
