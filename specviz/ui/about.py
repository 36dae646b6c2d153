"""The About tab: what people ask about speculative decoding, answered in plain words."""

from __future__ import annotations

import gradio as gr

WHAT = """
## What this page shows

A language model writes one token (a word or a piece of one) at a time, and each costs a full pass
through the model. **Speculative decoding** lets a small, quick model, the *draft*, guess several
tokens ahead. The large model, the *target*, then checks all the guesses in one pass. The guesses
it agrees with are kept, and the text is what the target alone would have written.
"""
LIVE = """
Explore runs this on real models, here, and times it against the target alone. Every figure on the
page was measured in the run you see. What was not measured is shown as —.
"""
RECORDED = """
Explore replays runs of real models, each recorded beside the target alone. Every figure on the
page was measured in the run you see. What was not measured is shown as —.
"""
ANSWERS = """
### 1. The target has to run anyway: where is the saving?
In the number of passes. One pass reads all of the target's weights from memory once, whether it
scores one token or eight, and with a single reader, reading weights is what takes the time. So
checking five tokens costs about as much as making one. The timeline under the text shows it to
scale: compare a target call of the speculative lane with one of the baseline.

### 2. How can five tokens be checked in one pass, when each depends on the one before?
The guesses are already there, so nothing has to be waited for. A pass over "the quick brown sock
jumps" gives the target's next-token prediction after *the*, after *the quick*, after *the quick
brown*, and so on, all at once: every position sees only what stands before it. The same happens
when a model reads your prompt.

### 3. Why stop at the first rejection, when a later guess may look fine?
It was guessed after a beginning that no longer exists. Once *sock* is replaced by *fox*, the guess
*jumps* answers a question nobody asks any more. Such tokens are **discarded**: drafted, never
tested.

### 4. Why may a token be accepted that the target would not have chosen first?
With a temperature above 0 the target has no single choice, it has a probability p for every token.
The draft has its own, q. A guess is kept with probability min(1, p/q): always if the target likes
it at least as much as the draft does, sometimes if it likes it less. That is exactly what keeps
the target's probabilities intact. At temperature 0 a guess is kept only if it is the target's
first choice.

### 5. After a rejection, why draw from max(p - q, 0) and not from p?
Because accepted tokens have already used up a part of p: of each token's probability, min(p, q) is
delivered by the draft's guesses. What is missing is p - q wherever p is larger. Drawing the
replacement from just that, scaled to sum to 1, fills the gap; drawing from p again would deliver
some tokens twice.

### 6. Where does the bonus token come from?
To check the last guess, the pass had to read it, and so it also predicted what follows it. If all
guesses are kept, that prediction is a free token of the target's own.

### 7. Does it change the text, or its quality?
No. At temperature 0 the text is the target's own, token for token; above 0 its probabilities are
the target's. One thing to know: in low-precision arithmetic (bfloat16) the same sum done in a
different order can round differently, and where two tokens are almost equally likely the choice
may fall either way. The page names such a near tie when it happens. Choose float32 under More
settings and it goes away.

### 8. Why is it slower for me?
Usually one of these. The draft takes too long for each guess. The guesses are too often wrong, so
drafting is wasted: try a smaller gamma, or another drafter. The processor is already fully busy,
so that checking several tokens is not nearly free. The answer is too short for the start-up to
pay. Or the prompt is of a kind that is hard to guess: free prose is harder than code, lists or
rewriting. A run below 1x says so in the headline.

### 9. Which draft should I take, and how big?
Look at its speed first and at its accuracy second: a draft costs its time on every guess, right or
wrong. [Yan, Agarwal and Venkataraman](https://arxiv.org/abs/2402.01528) found that latency matters
more than how good a language model the draft is. Draft and target must use the same tokens.

### 10. What does temperature do to acceptance?
It spreads both models' probabilities. A sharp choice becomes a soft one, the two models overlap
less, and usually fewer guesses are kept. Run one prompt at 0 and at 1 and compare.

### 11. Why not accept only when both models picked the same token?
It would be just as exact if the target's token is drawn at random, but it keeps less. Two separate
draws agree with probability sum of p times q; the test above keeps sum of min(p, q), which is never
smaller.

### 12. Does it help when many people are served at once?
Less. Serving many at once already fills the arithmetic that stands idle when one text is decoded,
and that idle arithmetic is what checking guesses lives on. This page measures one text at a time.

### 13. What do prompt lookup, early exit and EAGLE do differently?
Only where the guess comes from. Prompt lookup copies what followed the same words earlier in the
text; early exit uses the target's own first layers; EAGLE uses a small head on the target's inner
state. Checking is the same for all, so the text stays exact with each. Prompt lookup can be chosen
here.

## The papers

- Leviathan, Kalman, Matias: [Fast Inference from Transformers via Speculative Decoding](https://arxiv.org/abs/2211.17192)
- Chen and others: [Accelerating Large Language Model Decoding with Speculative Sampling](https://arxiv.org/abs/2302.01318)
- Yan, Agarwal, Venkataraman: [Decoding Speculative Decoding](https://arxiv.org/abs/2402.01528)
"""


def draw(recorded: bool = False) -> None:
    """Put the tab into the block that is open. ``recorded`` is for a page on which nothing runs."""
    text = WHAT + (RECORDED if recorded else LIVE) + ANSWERS
    gr.Markdown(text, elem_id="about-text", elem_classes="prose-page")
