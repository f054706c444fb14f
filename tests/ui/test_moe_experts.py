"""Routing, what experts learned, and breaking, without a browser: true numbers, clear sentences, nothing changed."""

import asyncio
import dataclasses
import html
import inspect
import math
import re
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest
import torch

from playground.data import LANGUAGES, corpus_from_language
from playground.data.tokenizers import CharTokenizer
from playground.figures import breaking as breaking_figures
from playground.figures import routing as routing_figures
from playground.figures import specialisation as figures
from playground.figures.wire import numbers_of
from playground.inspection.balance import Pull
from playground.inspection.edits import edits_tap
from playground.inspection.expert_information import MEASURES
from playground.inspection.favourites import favourites
from playground.inspection.nulls import Judgement, Null
from playground.inspection.routing import Station, routing_of
from playground.model import ModelConfig, Transformer
from playground.service import balance
from playground.service.balance import KINDS, BalanceRun, balance_runs
from playground.service.board import Board
from playground.service.limits import LOCAL
from playground.service.models import SHIPPED_FOLDER, Registry
from playground.storage import Checkpoint, load
from playground.training import History, LoadMeasured
from playground.ui.page import Page, model_dropdown
from playground.ui.tabs.moe import breaking, experts, measured, routing, unbalanced
from playground.ui.tabs.moe.two_models import pick_two
from tests.ui.runs import known

measured.PROBE_TOKENS = 1024  # enough to be wrong by
ANNA = known("anna")
DIALECTS = LANGUAGES["dialects"]
LETTERS = CharTokenizer.from_text("".join(dict.fromkeys(DIALECTS.graph.texts)) + "<>&")
MIXTURE = ModelConfig(
    vocab_size=LETTERS.vocab_size, context_length=32, n_layers=2, d_model=16, n_heads=2, n_experts=4, d_expert=8,
    init_std=0.4, positions="rotary",
)  # fmt: skip


def mixture(about: dict | None = None, **changes) -> Checkpoint:
    history = History()
    history.add(LoadMeasured(5, 0.0, [[0.25] * 4, [1.0, 0.0, 0.0, 0.0]]))
    model = Transformer(MIXTURE.replace(**changes), seed=1)
    return Checkpoint(model, LETTERS, history, "mixture", {"prompt": "the wind"} if about is None else about)


class Tab:
    """The three parts with some models of Anna's; `call` runs the handler that an event of a component reaches."""

    def __init__(self, **models: Checkpoint):
        registry = Registry(LOCAL)
        self.ids = {name: registry.add(ANNA, checkpoint) for name, checkpoint in models.items()}
        with gr.Blocks() as self.blocks:
            visitor, model = gr.BrowserState(""), model_dropdown(registry, label="Model")
            tabs = gr.Tabs()
            page = self.page = Page(LOCAL, registry, Board(registry, LOCAL), visitor, model, tabs, ("moe",))
            with tabs, gr.Tab("moe") as page.tab:
                frame = self.frame = pick_two(page, gr.Textbox(visible=False))
                for part, name in ((routing, "routing"), (experts, "experts"), (breaking, "breaking")):
                    with frame.part(part.TITLE, name, open=name == "routing"):
                        part.build(frame)
            page.finish()
        self.on_load = frame.handlers  # of the three parts

    def happens(self, block, event: str, session: str | None = None, **changes) -> list[dict]:
        """What all that listen to this event answer, beside saying that they did; `changes` by elem_id or `opened`."""
        answers = []
        for function in self.blocks.fns.values():
            if (block._id, event) in function.targets and function.fn and inspect.iscoroutinefunction(function.fn):
                values = {c: getattr(c, "value", None) for c in function.inputs}
                values |= {self.page.visitor: ANNA, self.frame.moe: self.ids["dialects"]}
                for c in values:
                    name = "opened" if c is self.page.opened else (c.elem_id or "").replace("-", "_")
                    values[c] = changes.get(name, values[c])
                answer = asyncio.run(function.fn(values, gr.EventData(None, None), gr.Request(session_hash=session)))
                answers.append({c: v for c, v in answer.items() if c not in function.inputs or c.elem_id})
        return [answer for answer in answers if answer]

    def call(self, elem_id: str, event: str, *values):
        for function in self.blocks.fns.values():
            for number, name in function.targets:
                if name == event and self.blocks.blocks[number].elem_id == elem_id and function.fn:
                    if not inspect.iscoroutinefunction(function.fn):
                        return function.fn(*values)
                    asked = dict(zip([*function.inputs, None], [*values, *[None] * len(function.inputs)]))
                    answer = asyncio.run(function.fn(asked, gr.EventData(None, None), gr.Request()))
                    return [answer[output] for output in function.outputs[:-1]]
        raise AssertionError(f"nothing listens to {event} of {elem_id}")

    def named(self, answer: dict) -> SimpleNamespace:
        """An answer by elem_id."""
        return SimpleNamespace(**{(c.elem_id or "").replace("-", "_"): value for c, value in answer.items()})


@pytest.fixture(scope="module")
def tab() -> Tab:
    return Tab(
        dialects=mixture({"prompt": "the wind", "language": "dialects"}),
        plain=mixture({}),
        dense=mixture(n_experts=0),
        all_experts=mixture({"language": "dialects"}, n_experts=2, experts_per_token=2),
    )


def test_the_routing_shown_is_the_models(tab):
    checkpoint, text = mixture(), "the wind <b>&"
    ids = LETTERS.encode(text)
    shown, _, weights, followed, journey, table, load, over, _ = tab.call(
        "routing-prompt", "submit", ANNA, tab.ids["dialects"], text, 1, 6
    )
    found = routing_of(checkpoint.model, torch.tensor([ids]))
    assert "<b>&</b>" not in shown and "<script" not in shown
    spans = re.findall(r'data-token="(\d+)"(.*?)<b>(.*?)</b>(.*?)</span>', shown)
    assert [html.unescape(s[2]) for s in spans] == list(text.replace(" ", "␣"))
    for t, (_, mark, _, numbers) in enumerate(spans):
        assert [int(n) for n in re.findall(r">(\d+)</i>", numbers)] == found.experts[:, 0, t, 0].tolist()
        assert ("followed" in mark) == (t == 6)
    cells = np.nan_to_num(numbers_of(weights["figure"]["data"][0]["z"]))
    assert cells == pytest.approx(found.dense_weights()[1, 0].T.numpy(), abs=1e-6)
    assert "Token 6 “n”" in followed
    assert numbers_of(journey["figure"]["data"][0]["z"]) == pytest.approx(
        found.probabilities[:, 0, 6].numpy(), abs=1e-6
    )
    scores = [float(x.replace("−", "-")) for x in re.findall(r'title="([−\d.e]+)"', table)]
    assert scores == pytest.approx(found.logits[:, 0, 6].flatten().tolist())
    assert numbers_of(load["figure"]["data"][0]["y"]) == pytest.approx(found.load[1].numpy())
    assert "Experts 1, 2, 3 get next to nothing" in over["summary"] and "0.00 of at most 2.00 bits" in over["summary"]
    assert over["summary"].count("step 5") == 1 and "At step" not in over["summary"], "it has one record"


@pytest.mark.parametrize("position, followed", [(-4, 0), (None, 0), (10_000, 7)])
def test_a_token_outside_the_text_is_the_nearest_one(tab, position, followed):
    shown = tab.call("routing-prompt", "submit", ANNA, tab.ids["plain"], "the wind", 0, position)[3]
    assert f"Token {followed} " in shown


def test_bad_choices_are_answered_in_sentences(tab):
    for draw, further in zip(tab.on_load, ([None], [])):  # a request that asks for nothing
        answer = draw(ANNA, tab.ids["dense"], *further)
        assert any(isinstance(v, str) and "dense model" in v for v in answer.values())
    assert "dense model" in tab.named(tab.on_load[2](ANNA, tab.ids["dense"])).breaking_note
    assert "no longer here" in tab.named(tab.on_load[2](ANNA, "somebody-elses")).breaking_note
    shown = tab.call("routing-prompt", "submit", ANNA, tab.ids["plain"], "", 0, 0)
    assert "prompt is empty" in shown[1] and not any(shown[:1] + shown[2:]), "nothing of another text stays"
    with pytest.raises(gr.Error, match="only 9 tokens"):
        tab.call("experts-text", "submit", ANNA, tab.ids["plain"], "the wind.", 0)
    for how, layer, chosen, words in (
        ("off", 0, [0, 1, 2], "at most 2 can be switched off"),
        ("off", 7, [0], "Layer 7 has no experts"),
        ("silent", 0, [9], "no expert 9"),
        ("force", 0, [], "Choose the expert"),
        ("juggle", 0, [0], "what to do"),
        ("off", "0; drop", [0], "by their numbers"),
    ):
        said, chart, _ = tab.call(
            "breaking-prompt", "submit", ANNA, tab.ids["dialects"], "the ", how, layer, chosen, False
        )
        assert words in said and chart is None, "no numbers of another choice beside the complaint"
    said, *_ = tab.call("breaking-prompt", "submit", ANNA, tab.ids["all_experts"], "the ", "off", 0, [1], False)
    assert "none can be switched off" in said and "Silence them" in said


def test_a_model_without_sources_says_so_and_still_shows_favourites(tab):
    answer = tab.named(tab.on_load[1](ANNA, tab.ids["plain"]))
    assert "Nobody knows the true sources" in answer.experts_note
    text = "abababab <cook> & sea. " * 40
    table = tab.call("experts-text", "submit", ANNA, tab.ids["plain"], text, 1)
    (table,) = table.values()
    assert "<cook>" not in table and "&lt;" in table and "your text" in table
    ids = LETTERS.encode(text)[: 32 * ((len(LETTERS.encode(text)) - 1) // 32)]
    routed = routing_of(mixture().model, torch.tensor(ids).view(-1, 32)).experts[1].flatten(0, 1)
    told = [[f"×{f.lift:.2f}" for f in some] for some in favourites(routed.numpy(), ids, 4)[0]]
    assert any(told) and re.findall(r"×[\d.]+", table) == [f for some in told for f in some]
    assert table.count("nothing more often than luck explains") == told.count([])


def test_what_is_shown_about_sources_is_what_was_measured(tab):
    checkpoint = tab_checkpoint = mixture({"language": "dialects"})
    found = measured.found_in(checkpoint)
    assert measured.found_in(tab_checkpoint) is found  # measured once
    answer = tab.named(tab.on_load[1](ANNA, tab.ids["dialects"]))
    drawn = answer.experts_bits["figure"]["data"]
    for trace, name in zip(drawn, MEASURES):
        assert numbers_of(trace["y"]) == pytest.approx([layer[name].bits for layer in found.judgements], abs=1e-6)
    assert f"{found.token_bits:.2f}" in answer.experts_bits["summary"]
    marks = [trace for trace in drawn if "error_y" in trace]
    assert len(marks) == len(MEASURES)
    for trace, name in zip(marks, MEASURES):  # the null that is hardest to beat
        hardest = [layer[name].nulls[layer[name].hardest].bits for layer in found.judgements]
        assert numbers_of(trace["y"]) == pytest.approx(hardest, abs=1e-6)
    telling = max(range(2), key=lambda i: found.judgements[i]["beyond"].bits)
    table, cells = found.tables[telling], answer.experts_sources["figure"]["data"][0]["text"]
    for e, row in enumerate(table):
        for s, count in enumerate(row):
            if row.sum():
                lift = (count / row.sum()) / (table[:, s].sum() / table.sum())
                assert cells[e][s] == f"{count:,} · ×{lift:.2f}"
    assert f"% of all {table.sum():,} counted (×" in answer.experts_sources["summary"]  # favourites count another text


def test_an_edit_shows_before_and_after_and_leaves_the_model_alone(tab):
    checkpoint = next(iter([mixture()]))
    ids = LETTERS.encode("the ")
    for how, last in (("off", False), ("silent", False), ("force", True)):
        cards, picture, _ = tab.call("breaking-prompt", "submit", ANNA, tab.ids["dialects"], "the ", how, 1, [2], last)
        before = numbers_of(picture["figure"]["data"][0]["x"])
        truth = checkpoint.model(torch.tensor([ids])).logits[0, -1].softmax(0).sort(descending=True).values
        assert before[:4] == pytest.approx(truth[:4].tolist(), abs=1e-5)
        assert "loss as it is" in cards and "KL divergence" in cards
    edit = edits_tap([breaking.edit_for("force", 1, [2], (3,))], checkpoint.config)
    seen = routing_of(checkpoint.model, torch.tensor([ids]), edit=edit)
    assert seen.experts[1, 0, 3, 0] == 2 and seen.weights[1, 0, 3].tolist() == [1.0, 0.0]
    unchanged = mixture().model.state_dict()
    entry = tab.call("breaking-worth", "click", ANNA, tab.ids["dialects"])
    assert numbers_of(entry["figure"]["data"][0]["z"]).shape == (2, 4)
    stored = next(e for e in tab.on_load[2].__closure__ if isinstance(e.cell_contents, Page)).cell_contents
    kept = stored.registry.get(tab.ids["dialects"], ANNA).model.state_dict()
    assert all(torch.equal(kept[name], tensor) for name, tensor in unchanged.items())


def test_what_the_routers_margin_is_stands_under_its_table():
    one = Station(0, (0, 2), (0.6, 0.4), (1.0, 0.7, 0.5, -1.0), (0.4, 0.3, 0.2, 0.1))
    said = routing.scores_table([one])
    assert "<td>−0.20</td>" in said and "lowest score of those visited minus" in said and "Below 0 the bias" in said
    assert "Below 0" not in routing.scores_table([dataclasses.replace(one, experts=(0, 1))])


def test_gradients_of_the_balance_terms_are_shown_as_they_are(tab):
    shown = tab.named(tab.on_load[2](ANNA, tab.ids["dialects"])).breaking_pulls
    rows = {row[0]: [float(x) for x in row[1:]] for row in
            (re.findall(r"<td.*?>(.*?)</td>", line) for line in re.findall(r"<tr>(<td.*?)</tr>", shown))}  # fmt: skip
    assert rows["the constant"][0] == 1.0 and max(rows["the constant"][1:]) < 1e-6
    assert min(rows["Switch loss"][1:]) > 1e-4 and "so it can move load" in shown
    fixed = tab.named(tab.on_load[2](ANNA, tab.ids["all_experts"]))
    assert "no load can move" in fixed.breaking_pulls and "so it can move load" not in fixed.breaking_pulls
    assert "silenced" in fixed.breaking_note
    rounding = {name: Pull(1.0, (4e-9, 3e-9)) for name in ("loss", "switch", "constant")}
    assert "it moves no load here" in breaking.pulls_table(rounding, (0, 1))


@pytest.mark.parametrize("bf16", [True, False])
def test_three_runs_begin_equal_and_the_constant_changes_nothing(monkeypatch, bf16):
    """Whether or not the machine has bf16 in hardware."""
    monkeypatch.setattr("playground.devices.has_fast_bf16", lambda device: bf16)
    text = corpus_from_language("dialects", n_characters=20_000, n_validation=5_000, unit="word")
    monkeypatch.setattr(balance, "_corpus", lambda: text)
    corpus, config, training = balance.planned(1, 10)
    config, training = config.replace(d_model=16, d_expert=8), training.replace(eval_every=5)
    *_, runs = balance_runs(config, corpus, training)
    assert list(runs) == list(KINDS)
    switch, none, constant = runs.values()
    assert switch.losses[0] == none.losses[0] == constant.losses[0]
    assert switch.steps == none.steps == [5, 10] and all(
        0 <= bits <= 3 for run in runs.values() for bits in run.entropy
    )
    # a gradient of rounding size is all that the constant adds
    assert constant.losses == pytest.approx(none.losses, abs=1e-4)
    assert "of 3.00 bits" in unbalanced.summary(runs, config)
    none.losses[-1], none.steps[-1:], none.loss_steps[-1] = 0.5, [], 7  # as if it had been stopped after step 7
    said = unbalanced.summary(runs, config)
    assert said.startswith("After 5 steps") and "0.5000" not in said
    for bad in ((1.5, 100), (1, 0), (True, 60), (1, 10**6), (9, 60)):
        with pytest.raises(ValueError):
            balance.planned(*bad)


def test_two_runs_that_are_alike_as_written_are_not_said_to_differ():
    def said(*losses: float) -> str:
        runs = {name: BalanceRun(loss_steps=[60], losses=[loss]) for name, loss in zip(KINDS, losses)}
        stopped = runs[list(KINDS)[1]]
        stopped.loss_steps, stopped.losses = [60, 67], [*stopped.losses, 0.5]  # after the others' last evaluation
        return unbalanced.losses_so_far(runs)

    assert said(2.0, 2.10004, 2.09996).endswith("those two are alike to four decimals.")
    assert said(2.0, 2.1, 2.1003).endswith("those two differ by 0.0003, which is rounding that grew.")
    assert "They are alike to four decimals" in said(2.1, 2.1, 2.1) and "0.0000" not in said(2.1, 2.1, 2.1)


def told(bits: float, random: float, margin: float) -> Judgement:
    nulls = {"shuffled": Null(0.004, 0.001), "position": Null(0.0, 0.0), "before": Null(0.01, 0.0)}
    return Judgement(bits, {**nulls, "random": Null(random, margin)})


def test_what_experts_know_is_only_what_is_left_above_untaught_routers():
    def layers(*found: Judgement) -> list[dict[str, Judgement]]:
        return [dict.fromkeys(MEASURES, left) for left in found]

    said = figures.describe_information((3, 5), layers(told(0.12, 0.15, 0.1), told(0.3, 0.25, 0.1)), 0.1)
    assert "unclear" in said and "attention has gathered it" in said and "layer 5, and 0.250 for random routers" in said
    assert "random routers tell 0.25 bits beyond the token on average in layer 5" in said and "any router" not in said
    assert "look away" not in said
    said = figures.describe_information((3, 5), layers(told(0.02, 0.2, 0.1), told(0.3, 0.25, 0.1)), 0.1)
    assert "clearly less than random routers on the same stream: the expert alone in layer 3" in said
    assert "look away" in said and "unclear" not in said, "one statement"
    before = told(0.02, 0.0, 0.01)
    before.nulls["before"] = Null(0.052, 0.0)
    said = figures.describe_information((0, 1), layers(told(0.2, 0.21, 0.1), before), 0.1)
    assert "less than the routers before training: the expert alone in layer 1" in said
    assert "look away" not in said and "less than random" not in said and "unclear" not in said
    said = figures.describe_information((0, 1), layers(told(0.125, 0.12, 0.1), told(0.14, 0.15, 0.1)), 0.1)
    assert "does best" not in said and "stands best against what tells most untaught – the expert alone: 0.125" in said
    said = figures.describe_information((3, 5), layers(told(0.0, 0.002, 0.1), told(0.0, 0.001, 0.1)), 0.1)
    assert "unclear" in said and "attention" not in said, "here the stream does not know, either"
    said = figures.describe_information((3, 5), layers(told(0.5, 0.2, 0.1), told(0.3, 0.25, 0.1)), 0.1)
    assert (
        "more of who speaks than any that was taught nothing would" in said
        and "in layer 3" in said
        and "unclear" not in said
    )
    assert "; left +0.300 ± 0.100" in said and "for all layers and measures at once" in said
    for left, words in (
        (told(0.242, 0.25, 0.112), "; nothing clear is left (−0.008 ± 0.112)"),
        (told(0.1, 0.25, 0.1), "; clearly less (−0.150 ± 0.100)"),
        (told(0.3, 0.25, math.inf), "cannot be told from so short a text"),
    ):
        said = figures.describe_information((3,), layers(left), 0.1)
        assert words in said and "most is left" not in said
        assert ("The ± is a 95 % interval" in said) == math.isfinite(left.margin)
    bars = figures.information_bars((0,), layers(told(0.3, 0.25, 0.1)))["data"]
    saved = [bar["meta"]["series"] for bar in bars if "error_y" in bar]
    assert saved == [f"{figures.MEASURE_NAMES[name]}: routers that were taught nothing" for name in MEASURES]
    assert sum(bar.get("showlegend", False) for bar in bars if "error_y" in bar) == 1


def test_the_shipped_routers_are_not_said_to_have_learned_who_speaks(monkeypatch):
    monkeypatch.setattr(measured, "PROBE_TOKENS", 4096)
    found = measured.found_in(load(SHIPPED_FOLDER / "dialects-moe"))
    layers = found.layers
    said = figures.describe_information(layers, found.judgements, found.token_bits)
    assert "Nothing shows that these routers have learned who speaks" in said and "routers do not need to" in said
    bars = figures.information_bars(layers, found.judgements)["data"]
    marked = numbers_of(bars[len(MEASURES) + MEASURES.index("beyond")]["y"])
    assert marked == pytest.approx([layer["beyond"].nulls["random"].bits for layer in found.judgements])


def test_a_load_is_told_by_weight_and_by_who_is_nobodys_first_choice():
    said = routing_figures.describe_weights(24, (7.9, ()), (6.9, (4,)), [4])
    assert "like 7.9 evenly used ones, by weight like 6.9: a visit" in said and "hardly heard: expert 4" in said
    assert "Nobody's first choice: expert 4" in said
    more = routing_figures.describe_weights(24, (7.1, ()), (7.3, ()), [])
    assert "like 7.1 evenly used ones, by weight like 7.3." in more  # which no light visits explain
    said = routing_figures.describe_weights(1, (2.0, (1, 2)), (2.0, (1, 2)), [1, 2])
    assert not any(words in said for words in ("hardly heard", "first choice", "by weight", "next to nothing"))


def test_pictures_say_what_they_show():
    even = {"a": 3.0, "b": 1.0}
    said = breaking_figures.describe_runs(even, 3.0, {"a": 0, "b": 5}, {"a": 0.7, "b": 0.9}, 100)
    assert "“b” has collapsed" in said
    even = {"a": 2.8, "b": 2.8, "c": 2.83}
    said = breaking_figures.describe_runs(even, 3.0, dict.fromkeys(even, 0), dict.fromkeys(even, 0.7), 100)
    assert "least even" not in said, "of three that are alike none is the least"
    said = breaking_figures.describe_losses({"a": 0.7, "b": 0.71, "c": 0.706}, 0.006, 60)
    assert "no winner" in said and "hardly more than two runs that are asked the same" in said
    assert "no winner" in breaking_figures.describe_losses({"a": 0.7, "b": 0.9, "c": 0.901}, 0.001, 60)
    costs, margins = np.array([[0.1, -0.01], [0.5, 0.0]]), np.array([[0.02, 0.05], [0.1, 0.01]])
    said = breaking_figures.describe_costs(costs, margins, (1, 3), 0.7, "96 tokens of a text", costs == 0.5)
    assert "expert 0 of layer 3, whose absence costs 0.5000 ± 0.1000" in said and "2 of 4 make no difference" in said
    said = breaking_figures.describe_costs(costs, margins, (1, 3), 0.7, "96 tokens of a text", costs > 0)
    assert "Missed most: expert 0 of layer 3 and expert 0 of layer 1, which this text cannot tell apart: 0.50" in said
    cells = breaking_figures.cost_map(costs, margins, (1, 3), 0.7)["data"][0]
    assert cells["text"] == [["0.10", "(−0.010)"], ["0.50", "(0.000)"]]
    assert "3 of 8 experts" in routing_figures.describe_routing(
        np.array([[0, 1], [0, 5]]), np.array([[0.9, 0.1], [0.6, 0.4]]), ["a", "b"], 2, 8
    )


def test_a_preference_is_the_largest_of_those_experts_only_that_enough_tokens_choose():
    table = np.array([[80, 20], [1600, 1000], [900, 2000]])  # 0 prefers the first most, and is seldom chosen
    said = figures.describe_sources(table, ["cook", "miner"])
    assert said.startswith("Of the experts that a fiftieth of the tokens chooses first, expert 1 stands out most")
    assert figures.describe_sources(table[1:], ["cook", "miner"]).startswith("Expert 0 stands out most")
