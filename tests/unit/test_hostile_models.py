"""Models that come with more than weights: code, programs for templates, markup for tokens."""

from __future__ import annotations

import ast
import json
import threading
from pathlib import Path
from types import SimpleNamespace

import checkpoints
import pytest

from specviz import chat
from specviz.chat import PromptError, encode
from specviz.pairs import PairError, Shelf
from specviz.text import Texts

ROOT = Path(__file__).parents[2] / "specviz"
MARKUP = "<img src=x onerror=alert(1)>"


def prompt_pair(words):
    target = SimpleNamespace(name="T", context=256, vocabulary=len(words))
    return SimpleNamespace(tokenizer=words, target=target)


def ask(template):
    return encode(prompt_pair(checkpoints.tokenizer(template=template)), "the sea", chat=True)


# --- chat templates ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "template",
    [
        "{% for i in range(10**9) %}{% endfor %}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}",
        "{{ messages.append(1) }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{{ 1 // 0 }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{{ no.such.thing }}",
        "{% for",
    ],
)
def test_a_template_that_tries_a_trick_is_refused_in_one_sentence(template):
    with pytest.raises(PromptError, match="chat template of this model refused") as raised:
        ask(template)
    assert len(str(raised.value)) < 400
    assert "\n" not in str(raised.value)


def test_a_template_that_does_not_end_is_ended(monkeypatch):
    monkeypatch.setattr(chat, "TEMPLATE_SECONDS", 0.3)
    inner = "{% for j in range(99999) %}{% endfor %}"
    endless = "{% for i in range(99999) %}" + inner + "{% endfor %}"
    told = []

    def run():
        with pytest.raises(PromptError, match="did not end within") as raised:
            ask(endless)
        told.append(str(raised.value))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(30)
    assert told


def test_a_template_that_writes_a_book_is_refused():
    with pytest.raises(PromptError, match="makes 2,000,000 characters of the prompt"):
        ask("{% for i in range(2000) %}{{ '" + "x" * 1000 + "' }}{% endfor %}")


def test_what_a_template_says_of_itself_is_cut():
    with pytest.raises(PromptError) as raised:
        ask("{{ raise_exception('" + "long\\n" * 5000 + "') }}")
    assert len(str(raised.value)) < 400


# --- code ----------------------------------------------------------------------------------


def with_code(folder, name, entry, **more):
    """Add a module that leaves a mark when it is run, and an auto_map that names it."""
    mark = folder.parent / "ran"
    (folder / "own.py").write_text(f"open({str(mark)!r}, 'w')\nclass Own: pass\n")
    config = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps({**config, "auto_map": entry, **more}))
    return mark


def load(folder):
    return Shelf().load(str(folder), "", "float32")


def test_the_code_of_a_tokenizer_is_not_run(tmp_path):
    folder = checkpoints.save(tmp_path / "target")
    entry = {"AutoTokenizer": ["own.Own", "own.Own"]}
    mark = with_code(folder, "tokenizer_config.json", entry, tokenizer_class="Own")
    with pytest.raises(PairError, match="runs no code that comes with models"):
        load(folder)
    assert not mark.exists()


def test_the_code_of_a_model_of_a_known_kind_is_left_alone(tmp_path):
    folder = checkpoints.save(tmp_path / "target")
    mark = with_code(folder, "config.json", {"AutoModelForCausalLM": "own.Own"})
    assert load(folder).target.module.__class__.__module__.startswith("transformers.")
    assert not mark.exists()


def test_nothing_in_the_source_asks_for_remote_code_or_opens_a_pickle():
    for file in sorted(ROOT.rglob("*.py")):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(call, ast.Call):
                continue
            name = ast.unparse(call.func)
            given = {word.arg: ast.unparse(word.value) for word in call.keywords}
            assert name not in ("pickle.load", "pickle.loads", "eval", "exec"), file
            assert name != "torch.load" or given["weights_only"] == "True", file
            assert given.get("trust_remote_code", "False") == "False", file
            assert given.get("allow_pickle", "False") == "False", file


# --- tokens --------------------------------------------------------------------------------


def test_an_added_token_of_markup_is_a_piece_of_text():
    words = checkpoints.tokenizer(extra=(MARKUP,))
    token = words.convert_tokens_to_ids(MARKUP)
    assert Texts(words).label(token) == MARKUP
    assert Texts(words).detokenizer().push(token) == MARKUP
