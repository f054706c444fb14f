"""The Generate tab's own logic: escaping, what a page may send back, and choices that can be opened again."""

import dataclasses
import json
from types import SimpleNamespace

import pytest
import torch

from playground.data.tokenizers import CharTokenizer
from playground.engine import SAMPLING_PRESETS, SamplingConfig, count_projections, generate
from playground.engine.request import default_slide
from playground.engine.sampling import probabilities
from playground.model import Transformer
from playground.service.limits import LOCAL, PAGES, PUBLIC
from playground.service.models import Registry
from playground.storage import Checkpoint
from playground.training import History
from playground.ui.forms import sampling
from playground.ui.forms.fields import whole
from playground.ui.tabs.generate.cache_panel import arithmetic
from playground.ui.tabs.generate.choice import _markdown, branch, label_of, opened, rows_of, scores_of
from playground.ui.tabs.generate.presses import Presses
from playground.ui.tabs.generate.temperatures import heated
from playground.ui.tabs.generate.tokens import OVERLAP, growing
from playground.ui.tabs.generate.writing import _next_seed, _no_mask, _write, slides
from playground.ui.tabs.generate.written import Written
from tests.model.configs import TINY

TOKENIZER = CharTokenizer("<b>&\n\"'xy")
CONFIG = TINY.replace(vocab_size=TOKENIZER.vocab_size)
CHECKPOINT = Checkpoint(Transformer(CONFIG, seed=1), TOKENIZER, History())
PROMPT = TOKENIZER.encode("xy<b>")


def written(n: int = 25, sampling: SamplingConfig | None = None) -> Written:
    sampling = sampling or SamplingConfig(temperature=1.3, top_k=5, seed=2)
    steps = list(generate(CHECKPOINT.model, PROMPT, n, sampling))
    tokens, chances = [s.tokens[0] for s in steps], [s.model_probability[0] for s in steps]
    return Written("some-model", "Stories <b>", PROMPT, [tokens], [chances], sampling, 0)


def streamed(n: int, press, n_samples: int = 1, stops: list[str] | None = None) -> tuple[Written, list]:
    """What `_write` fills in, and all that it would show."""
    empty: tuple[list, list] = [[] for _ in range(n_samples)], [[] for _ in range(n_samples)]
    text = Written("some-model", "Stories <b>", PROMPT, *empty, SamplingConfig(seed=2), 0)
    return text, list(_write(CHECKPOINT, text, "a-page-of-mine.1", n, stops or [], press))


def drawn(messages: list[dict]) -> list[str]:
    """The samples as a browser has them after these messages, some of which it may have missed."""
    texts: list[str] = []
    for message in messages:
        if "samples" in message:
            return ["".join(pieces) for pieces in message["samples"]]
        texts = texts or [""] * len(message["growing"])
        for i, part in enumerate(message["growing"]):
            assert part["from"] <= len(texts[i]), "a gap"
            texts[i] = texts[i][: part["from"]] + part["text"]
    return texts


def test_what_grows_is_sent_once_and_comes_through_whole():
    texts = ["".join(chr(97 + i % 26) for i in range(n)) for n in (10, 800, 2500, 2600)]
    sent = [0, *map(len, texts)]
    messages = [growing("p", {}, [text], [n], "") for text, n in zip(texts, sent)]
    assert drawn(messages) == [texts[-1]]
    assert len(messages[-1]["growing"][0]["text"]) <= OVERLAP + 100, "the whole text is not sent again"
    assert drawn([messages[0], messages[2]]) == [texts[2]], "a message that was missed is made up for"


def test_a_text_is_streamed_with_its_writer_and_ends_token_by_token():
    press = Presses().begin("a-page-of-mine.1")
    text, shown = streamed(40, press, n_samples=2)
    messages = [message for message, _ in shown]
    assert all(m["by"].startswith("Written by Stories <b>: seed 2") and m["model"] == "some-model" for m in messages)
    assert drawn(messages) == [TOKENIZER.decode(sample) for sample in text.samples]
    assert messages[-1]["chances"] == text.probabilities and [len(s) for s in messages[-1]["samples"]] == [40, 40]
    assert shown[-1][1][0].startswith("80 tokens in") and all(words is None for _, words in shown[:-1])
    json.dumps(messages)


def test_a_text_says_by_which_rules_it_was_written():
    def by(**rules) -> str:
        return Written("m", "Stories", [1], [[1]], [[0.5]], SamplingConfig(seed=12345678, **rules), 3).by

    assert by() == "Written by Stories: seed 12345678, temperature 1."
    assert by(greedy=True, repetition_penalty=1.3) == "Written by Stories, greedily, repetition penalty 1.3."
    assert by(temperature=0.3, top_k=5, min_p=0.02, repetition_penalty=1.2) == (
        "Written by Stories: seed 12345678, temperature 0.3, top-k 5, min-p 0.02, repetition penalty 1.2."
    )


def test_a_token_that_was_kept_is_not_said_to_be_drawn_by_the_rules_of_later_ones():
    text = written(8, SamplingConfig(seed=3))
    text.sampling, text.starts = SamplingConfig(greedy=True), [0, 6]
    text.samples[0][5] = next(t for t in range(CONFIG.vocab_size) if t != rows_of(CHECKPOINT, text, 0, 5)[0].token)
    kept, chosen, drawn = (opened(CHECKPOINT, text, 0, i) for i in (2, 5, 7))
    assert "was put there by you; these rules draw it with 0.0 %" in chosen[2]["summary"]
    assert "stood there before; these rules draw it with" in kept[2]["summary"] and "kept from before" in kept[1]
    assert "was drawn with" in drawn[2]["summary"] and "how it was chosen" in drawn[1]
    assert text.by == "Written by Stories <b>, greedily, from token 7 on."
    assert Written.from_dict(text.to_dict(), LOCAL) == text
    for wrong in ([], [-1], [-1, 0], [6], [0, 9], [0, 6, 2], [0, 2, 2]):
        with pytest.raises(ValueError, match="damaged"):
            Written.from_dict(text.to_dict() | {"starts": wrong}, LOCAL)


def test_tokens_that_a_stop_spared_are_not_counted():
    text, shown = streamed(40, Presses().begin("a-page-of-mine.1"), n_samples=2, stops=["x", "y", "b", "&"])
    assert len({len(sample) for sample in text.samples}) == 2
    assert shown[-1][1][0].startswith(f"{sum(map(len, text.samples))} tokens in")


def test_temperatures_are_compared_where_the_forms_own_is_0():
    hot = heated(SamplingConfig(temperature=0.0, seed=7), 2.0)
    assert (hot.temperature, hot.greedy, hot.seed) == (2.0, False, 7)


def test_stop_ends_a_text_at_its_next_token():
    presses = Presses()
    press = presses.begin("a-page-of-mine.1")
    text = Written("some-model", "Stories", PROMPT, [[]], [[]], SamplingConfig(), 0)
    shown = _write(CHECKPOINT, text, "a-page-of-mine.1", 4000, [], press)
    next(shown)
    presses.stop("a-page-of-mine.1")
    _, words = next(shown)
    assert len(text.samples[0]) == 2 and "Stopped; what was written is kept." in words
    assert next(shown, None) is None


def test_stop_holds_for_a_press_whose_turn_has_not_come():
    presses = Presses()
    presses.stop("a-page-of-mine.1")
    first, second = presses.begin("a-page-of-mine.1"), presses.begin("another-page.1")
    assert first.stopped and not first.overtaken and not second.stopped
    again = presses.begin("a-page-of-mine.2")
    assert not again.stopped and first.overtaken, "the next press is a new one"
    presses.stop("a-page-of-mine.1")
    assert not again.stopped, "a Stop that was meant for the one before"
    late = presses.begin("a-page-of-mine.1")
    assert late.overtaken, "its turn came after that of a newer press"


def test_presses_are_few_and_nonsense_stops_nobody():
    presses = Presses()
    for nonsense in (None, "", "x", 3, [], {}, "a-page-of-mine", "a-page-of-mine.", "<b>" * 9 + ".1", "p" * 99 + ".1"):
        presses.stop(nonsense)
        assert not presses.begin(nonsense).stopped
    for i in range(PAGES + 50):
        presses.begin(f"some-page-{i}.1")
    assert len(presses._pages) == PAGES


def test_a_press_takes_the_next_seed_unless_another_was_asked_for():
    kept = written().to_dict()
    assert _next_seed(2, kept) == 3 and _next_seed(7, kept) == 7
    for nothing in (None, [], {}, {"sampling": []}, {"sampling": {"seed": None}}):
        assert _next_seed(2, nothing) == 2


@pytest.mark.parametrize("value", [None, True, "3", [], 1.5, float("nan"), float("inf"), 10**400])
def test_a_number_that_is_none_is_a_sentence(value):
    with pytest.raises(ValueError, match="whole number"):
        whole("token", value)


def test_an_opened_choice_is_the_one_that_was_made():
    text = written()
    ids = list(PROMPT)
    for index, step in enumerate(generate(CHECKPOINT.model, PROMPT, 25, text.sampling)):
        logits, before = scores_of(CHECKPOINT.model, text, 0, index)
        assert before.tolist() == ids
        assert torch.allclose(logits, step.logits[0], atol=1e-4)
        rows = {row.token: row for row in rows_of(CHECKPOINT, text, 0, index)}
        drawn_with = probabilities(step.logits, before[None], text.sampling)[0, step.tokens[0]].item()
        assert rows[step.tokens[0]].probability == pytest.approx(drawn_with, abs=1e-4)
        ids.append(step.tokens[0])


def test_choices_beyond_the_context_are_opened_with_the_window_that_they_were_made_from():
    text, _ = streamed(30, Presses().begin("a-page-of-mine.1"))
    for index in (22, 33, 28):  # no whole slides apart; the last one drops what the second press wrote
        prompt, tokens, chances = branch(CHECKPOINT, text, 0, index, "3")
        starts = text.starts_up_to(len(tokens))
        text = Written("m", "Stories", prompt, [tokens], [chances], text.sampling, 0, "fp32", starts)
        list(_write(CHECKPOINT, text, "a-page-of-mine.1", 20, [], Presses().begin("a-page-of-mine.1")))
    assert text.starts == [0, 23, 29] and Written.from_dict(text.to_dict(), LOCAL) == text
    for index, token in enumerate(text.samples[0]):
        logits, _ = scores_of(CHECKPOINT.model, text, 0, index)
        assert logits.softmax(0)[token].item() == pytest.approx(text.probabilities[0][index], rel=1e-3)


def test_a_full_context_is_told_with_what_fell_out():
    text, shown = streamed(30, Presses().begin("a-page-of-mine.1"))
    steps = list(generate(CHECKPOINT.model, PROMPT, 30, text.sampling))
    assert slides(CONFIG.context_length, sum(step.rebuilt for step in steps)) in shown[-1][1]
    assert slides(128, 1) == (
        "The context of 128 tokens was full once: its oldest 32 tokens fell out and the cache was rebuilt."
    )
    assert "full 1,200 times: each time its oldest token fell out and the cache" in slides(3, 1200)


def test_branching_keeps_what_came_before():
    text = written()
    prompt, tokens, chances = branch(CHECKPOINT, text, 0, 10, "3")
    assert prompt == PROMPT and tokens == [*text.samples[0][:10], 3]
    assert chances[:10] == text.probabilities[0][:10]
    logits, _ = scores_of(CHECKPOINT.model, text, 0, 10)
    assert chances[10] == pytest.approx(logits.softmax(0)[3].item())
    for sample, number, token in ((0, 98, "3"), (1, 0, "3"), (0, 10, "99"), (0, 10, None), (-1, 0, "3")):
        with pytest.raises(ValueError, match=r"choose|Choose"):
            branch(CHECKPOINT, text, sample, number, token)


def test_an_opened_choice_names_its_token_harmlessly():
    heading = opened(CHECKPOINT, written(), 0, 3)[1]
    assert "<b>" not in heading and heading.startswith("**Token 4:")
    assert _markdown("*<x>_`") == "\\*&lt;x&gt;\\_\\`"
    assert label_of(TOKENIZER, TOKENIZER.encode("\n")[0]) == "⏎"


def test_a_record_survives_the_page_and_nonsense_does_not():
    text = written()
    again = Written.from_dict(text.to_dict(), LOCAL, CHECKPOINT)
    assert again == text
    good = text.to_dict()
    for bad in (
        None,
        [],
        {},
        good | {"prompt": []},
        good | {"prompt": ["x"]},
        good | {"samples": [[999]], "probabilities": [[0.5]]},
        good | {"samples": [[1, 2]], "probabilities": [[0.5]]},
        good | {"samples": [[1] * 10**5], "probabilities": [[0.5] * 10**5]},
        good | {"sampling": {"temperature": -1}},
        good | {"probabilities": [[float("nan")] * 25]},
        good | {"prompt": [float("inf")]},
        good | {"step": 7},  # it has other weights by now
        good | {"sampling": {"os": "system"}},
        good | {"precision": "int1"},
    ):
        with pytest.raises(ValueError, match="press Generate"):
            Written.from_dict(bad, PUBLIC, CHECKPOINT)


def test_a_model_without_a_mask_is_announced(tmp_path):
    registry = Registry(LOCAL, shipped=tmp_path)
    page = SimpleNamespace(registry=registry)
    peeking = dataclasses.replace(CHECKPOINT, model=Transformer(CONFIG.replace(causal=False)))
    assert "without a mask" in _no_mask(page, registry.add("anna", peeking), "anna")
    assert _no_mask(page, registry.add("anna", CHECKPOINT), "anna") == "" == _no_mask(page, "gone", "anna")


def test_the_arithmetic_is_right():
    text = arithmetic()
    for number in ("54 | 24", "381,750 | 1,515", "99.6 % saved", "1 GiB"):
        assert number in text
    assert "with the cache, three vectors fewer" in text
    room, T = CONFIG.context_length - len(PROMPT), CONFIG.context_length
    cached, plain = (list(generate(CHECKPOINT.model, PROMPT, room + 4, use_cache=use)) for use in (True, False))
    counted = plain[room - 1].projections, cached[room - 1].projections + 3
    assert counted == count_projections(len(PROMPT), room)
    assert cached[room + 1].rebuilt and not cached[room].rebuilt
    three_quarters = T + 1 - default_slide(T)  # the token that no longer fitted is among them
    assert cached[room + 1].projections - cached[room].projections == 3 * three_quarters
    assert cached[room + 2].projections - cached[room + 1].projections == 3
    assert plain[room + 2].projections - plain[room + 1].projections == 3 * (three_quarters + 1)


def test_a_preset_is_the_forms_only_while_its_numbers_are():
    for name in SAMPLING_PRESETS:
        values = sampling.preset_values(name)
        assert sampling.preset_of(values | {"temperature": float(values["temperature"]), "seed": 7}) == name
        assert sampling.preset_of(values | {"temperature": 1.5}) is None
    assert sampling.preset_of(dict.fromkeys(values, "x")) is None
