"""The Lossless tab in a real browser: bars that can be dragged, and three proofs."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
import torch
from playwright.sync_api import expect

from specviz.lossless.enumeration import law_of
from specviz.lossless.variants import RIGHT, WRONG
from specviz.sampling import Guess
from specviz.ui.elements import ASSETS, file_url

LAWS = """async ([url, cases]) => {
  const { firstTokenLaw, VARIANT_NAMES } = await import(url);
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
    url = "/" + file_url(ASSETS / "js" / "losslesslaw.js")
    asked = [[variant.name, p, q] for variant, p, q in cases]
    names, found = tab.page.evaluate(LAWS, [url, asked])
    assert names == [variant.name for variant in variants]
    for (variant, p, q), written in zip(cases, found, strict=True):
        assert written == pytest.approx(first_token_law(variant, p, q), abs=1e-12), variant.name


def test_moving_a_bar_keeps_the_law_exact_and_a_wrong_variant_breaks_it(tab):
    page = tab.page
    slider = page.get_by_role("slider", name="q of lamp")
    before = slider.get_attribute("aria-valuenow")
    slider.focus()
    for _ in range(5):
        slider.press("ArrowUp")
    expect(slider).not_to_have_attribute("aria-valuenow", before)
    expect(page.locator(".law-figures")).to_contain_text("none, to 12 decimals")
    page.get_by_label("wrong: softmaxed residual").check()
    expect(page.locator(".law-verdict")).to_contain_text("no longer the target")
    expect(page.locator(".law-verdict")).to_have_attribute("data-holds", "false")


def test_the_exact_proof_holds_and_fails_with_a_wrong_variant(tab):
    page = tab.page
    page.locator("button#prove-exact").click()
    status = page.locator("#proof-exact .proof-status")
    expect(status).to_contain_text("Holds: in all 14 cases", timeout=120_000)
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
