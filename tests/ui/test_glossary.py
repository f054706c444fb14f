"""The glossary explains the field's terms that stand on the page, no others, and each of its links leads somewhere."""

import ast
import html
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from playground.lessons.vocabulary import VIEWS
from playground.ui import tabs
from playground.ui.app import TABS, build_app
from playground.ui.glossary import WORDS

PACKAGE = Path(tabs.__file__).resolve().parents[2]
ROOMS = ("words", "ui", "figures", "inspection", "training", "service", "data")  # their sentences reach the page
FIELD = """
    token|tokens; vocabulary; BPE|byte-pair encoding; context length; embedding|embeddings; unembedding; residual
    stream; attention; attention heads?; query|queries; keys?; key/value heads; grouped-query attention;
    multi-query; softmax; logits?; logit lens; causal mask; feed-forward|MLP; activation; ReLU;
    GELU; SwiGLU|SiLU; LayerNorm; RMSNorm; pre-norm; post-norm; QK-norm; rotary|RoPE; ALiBi; sinusoidal|sinusoids;
    tied embeddings; parameters; loss(?:es)?; cross-entropy; nats?; bits; perplexity; validation;
    overfitting|overfits; underfitting; early stopping; patience; unigram; bigram; trigram; n-gram|[345]-gram;
    best possible loss; entropy; gradients?; gradient clip(?:ping)?;
    backpropagation; momentum buffers?; optimizers?; SGD; Adam; AdamW; Muon; Shampoo; learning rate;
    warm-up; cosine; weight decay; dropout; label smoothing; epochs?; batch; seeds?; FLOPs?;
    bf16|bfloat16|fp16|float16|fp32|float32; int8;
    quantis(?:ed|ation); LoRA; distillation; temperature; greedy; beam search; top-k; top-p; nucleus; min-p;
    typical sampling; repetition penalty; speculative decoding; KV cache; sliding window; flash attention;
    ablation; patch(?:es|ing)?; steering; circuits?; logit difference; induction; sparse autoencoders?; evenness;
    dense; mixture of experts|MoE; experts?; routers?; load balance; capacity factor; z-loss; 95 % intervals?;
    p-values?; standard deviation; bootstrap
"""
"""Terms of the field, whether the page uses them today or not: what of it stands there must be explained."""


def words_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield html.unescape(re.sub(r"<[^>]+>", " ", value))
    elif isinstance(value, dict):
        for each in value.values():
            yield from words_in(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from words_in(each)


@pytest.fixture(scope="module")
def built() -> str:
    """Labels, notes, headings, choices and texts of every component, as the page opens."""
    shown = ("label", "info", "value", "choices", "placeholder", "headers", "html_template")
    return "\n".join(text for block in build_app().blocks.values() for name in shown
                     for text in words_in(getattr(block, name, None)))  # fmt: skip


@cache
def said_later() -> str:
    """Every sentence in the rooms' code, docstrings apart: what the page says once something has happened."""
    found = []
    for path in (path for room in ROOMS for path in (PACKAGE / room).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        told_to_readers = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
        found += [node.value for node in texts if id(node) not in told_to_readers and " " in node.value.strip()]
    return "\n".join(found)


@cache
def terms() -> list[SimpleNamespace]:
    """All entries, in the order of the alphabet."""
    return [SimpleNamespace(**entry) for entry in json.loads(WORDS.read_text(encoding="utf-8"))]


def pattern(words: str) -> re.Pattern:
    return re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", re.IGNORECASE)


def test_every_term_of_the_field_on_the_page_is_explained(built):
    names = {name.casefold() for term in terms() for name in term.names}
    text = f"{built}\n{said_later()}"
    field = "|".join(words.strip() for words in FIELD.split(";"))
    used = {found[0].casefold() for found in pattern(field).finditer(text)}
    assert len(used) > 50
    known = pattern("|".join(sorted(map(re.escape, names), key=len, reverse=True)))
    assert not sorted(word for word in used if not known.search(word)), "explain these in assets/glossary.json"


def test_no_entry_explains_what_the_page_never_says(built):
    text = f"{built}\n{said_later()}"
    unused = [term.term for term in terms() if not pattern("|".join(map(re.escape, term.names))).search(text)]
    assert not unused, "the page says none of these: take them out of assets/glossary.json"


def test_entries_are_whole_and_their_links_lead_somewhere(built):
    entries = terms()
    names = [name.casefold() for term in entries for name in term.names]
    assert len(names) == len(set(names)), "a name leads to one entry"
    assert [term.term.casefold() for term in entries] == sorted(term.term.casefold() for term in entries)
    for term in entries:
        assert term.plain and term.means.endswith(".") and "!" not in term.means, term.term
        tab, view, place = (term.see.get(key) for key in ("tab", "view", "place"))
        assert tab in TABS and (view is None or view in VIEWS), term.see
        assert place[0].islower() or place in built, term.see
