"""The Generate panel: prompts it offers, texts that stream and end, tokens that are opened again, what is refused."""

import asyncio
import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from playground.data import build_tokenizer
from playground.data.tokenizers import CharTokenizer, WordTokenizer
from playground.engine import SamplingConfig, generate
from playground.engine.sampling import probabilities
from playground.model import Transformer
from playground.service.limits import LOCAL, PUBLIC, TEXTS_AT_ONCE
from playground.service.models import SHIPPED_FOLDER, Registry
from playground.service.runs import OWN_TEXT, Source
from playground.service.texts import learned
from playground.storage import Checkpoint, load
from playground.training import History
from playground.ui.places import Places
from playground.ui.prompts import suggestions
from playground.ui.tabs.generate import writing
from playground.ui.tabs.generate.choice import label_of, opened, rows_of, scores_of
from playground.ui.tabs.generate.kept import Beginning
from playground.ui.tabs.generate.selection import Selection
from playground.ui.tabs.generate.writing import slides
from playground.words.game import PLAYERS
from playground.words.numbers import percent, signed
from tests.model.configs import TINY
from tests.ui.generating import CHECKPOINT, CONFIG, PROMPT, TOKENIZER, Generating, Text
from tests.ui.test_page import NONSENSE

from .runs import ANNA, small_limits


@pytest.fixture(scope="module")
def panel() -> Generating:
    return Generating()


def beginning(text: Text, index: int, **more: Any) -> Beginning:
    return Beginning.read(text.up_to(index, **more), LOCAL, CHECKPOINT)


# ---- writing ---------------------------------------------------------------------------------------------------------


def test_a_text_is_streamed_with_its_writer_and_is_what_the_engine_writes(panel):
    text = panel.text(new_tokens=40, samples=2)
    rules = SamplingConfig(temperature=1.3, top_k=5, seed=2)
    steps = list(generate(CHECKPOINT.model, TOKENIZER.encode(PROMPT), 40, rules, n_samples=2))
    assert text.ids == [[step.tokens[i] for step in steps] for i in (0, 1)]
    assert text.chances[0] == [float(f"{step.model_probability[0]:.5g}") for step in steps]
    assert ["".join(p) for p in text.pieces] == [TOKENIZER.decode(ids) for ids in text.ids]
    assert "temperature 1.3, top‑k 5" in text.head["by"]
    assert text.head["model"] == panel.model_id and text.head["given"] == PROMPT
    assert text.end["cut"] and text.end["details"].startswith("80 letters in")
    full = sum(step.rebuilt for step in steps)
    assert slides(CONFIG.context_length, full) in text.end["details"]
    text = panel.text(new_tokens=40, samples=2, stop="b")
    assert len({len(ids) for ids in text.ids}) == 2 and not text.end["cut"]
    assert text.end["details"].startswith(f"{sum(map(len, text.ids))} letters in"), "those that a stop text spared, not"
    assert Selection(stop="a\\nb\n\nc").stops() == ["a\nb", "c"]


def test_the_route_answers_line_by_line_and_refuses_in_words(panel):
    client = panel.client()

    def write(after: Any = None, **selection: Any) -> Any:
        return client.post("/write", json={"visitor": panel.visitor, "selection": panel.asked(**selection).selection,
                                           "after": after})  # fmt: skip

    def last(answer: Any) -> dict:
        return json.loads(answer.text.strip().split("\n")[-1])

    assert Text([json.loads(line) for line in write(new_tokens=5).text.strip().split("\n")]).end
    for selection, words in (
        ({"prompt": ""}, "is empty"), ({"prompt": "x" * 30_000}, "at most 20,000"),
        ({"new_tokens": 10**6}, "new tokens"), ({"new_tokens": 0}, "Length must"),
        ({"samples": 99}, "samples at"), ({"samples": 1.5}, "Samples must"),
        ({"temperature": 9}, "between 0 and 3"),
        ({"model": "gone"}, "model"),
    ):  # fmt: skip
        assert words in last(write(**selection))["problem"], selection
    assert "Press Generate" in last(write(after={"prompt": [1]}))["problem"]
    for body in (b"", b"[]", b'{"visitor": "x", "selection": {}}', json.dumps({"visitor": panel.visitor}).encode()):
        assert client.post("/write", content=body).status_code == 400
    panel.writing._texts[panel.visitor] = TEXTS_AT_ONCE
    assert write().status_code == 429
    del panel.writing._texts[panel.visitor]


def test_a_sign_stands_for_what_is_no_character():
    tokenizer = build_tokenizer("bpe", "né à Zürich, où il fait très beau « déjà »\n" * 20, vocab_size=300)
    model = Transformer(TINY.replace(vocab_size=tokenizer.vocab_size), seed=3)
    panel = Generating(Checkpoint(model, tokenizer, History(), "bytes"))
    text = panel.text(prompt="né", temperature=2, top_k=0, new_tokens=200)
    assert "\N{REPLACEMENT CHARACTER}" in "".join(text.pieces[0]) and writing.ODD in text.end["said"]
    assert "" in text.pieces[0], "bytes that another token may complete are held back"
    assert text.head["given"] + "".join(text.pieces[0]) == tokenizer.decode(text.head["prompt"] + text.ids[0])
    some = next(t for t in range(tokenizer.vocab_size) if tokenizer.token_bytes(t) == b"\xc3")
    assert label_of(tokenizer, some) == "C3"


# ---- choices ---------------------------------------------------------------------------------------------------------


def test_an_opened_choice_is_the_one_that_was_made(panel):
    text, rules = panel.text(new_tokens=25), SamplingConfig(temperature=1.3, top_k=5, seed=2)
    ids = TOKENIZER.encode(PROMPT)
    for index, step in enumerate(generate(CHECKPOINT.model, ids, 25, rules)):
        here = beginning(text, index)
        logits, before = scores_of(CHECKPOINT.model, here)
        assert before.tolist() == ids
        assert torch.allclose(logits, step.logits[0], atol=1e-4)
        rows = {row.token: row for row in rows_of(CHECKPOINT, here)}
        drawn_with = probabilities(step.logits, before[None], rules)[0, step.tokens[0]].item()
        assert rows[step.tokens[0]].probability == pytest.approx(drawn_with, abs=1e-4)
        ids = [*ids, step.tokens[0]]


def test_choices_beyond_the_context_are_opened_with_the_window_that_they_were_made_from(panel):
    text, parts, chances = panel.text(new_tokens=30), [], []
    parts, chances = [0], list(text.chances[0])
    for index in (22, 33, 28):  # no whole slides apart; the last one drops what the second press wrote
        kept = [*text.ids[0][:index], 3]
        start = max(p for p in parts if p <= index)
        logits, _ = scores_of(CHECKPOINT.model, Beginning(text.head["prompt"], kept, start))
        chances = [*chances[:index], logits.softmax(0)[3].item()]
        after = {"prompt": text.head["prompt"], "tokens": kept, "start": len(kept), "chosen": True, "step": 0}
        text, parts = panel.text(after, new_tokens=20), [*(p for p in parts if p <= index), len(kept)]
        chances += text.chances[0]
        assert text.head["part"]["start"] == len(kept) and text.ids[0][: len(kept)] == kept
    assert parts == [0, 23, 29]
    for index, token in enumerate(text.ids[0]):
        here = Beginning(text.head["prompt"], text.ids[0][: index + 1], max(p for p in parts if p <= index))
        logits, _ = scores_of(CHECKPOINT.model, here)
        assert logits.softmax(0)[token].item() == pytest.approx(chances[index], rel=1e-3)


def test_an_opened_choice_says_how_likely_it_was_and_what_else_there_was(panel):
    text = panel.text(new_tokens=10)
    said, table = opened(CHECKPOINT, text.up_to(3), LOCAL)
    rows = rows_of(CHECKPOINT, beginning(text, 3))
    drawn = next(row for row in rows if row.token == text.ids[0][3])
    heading = re.search("<h2>(.*?)</h2>", said)[1]
    raw, made = (f"{100 * share:.1f}\u00a0%" for share in (drawn.raw_probability, drawn.probability))
    assert f"sampled at {made}" in heading
    assert f"{raw}; temperature 1.3 and top‑k 5 made that {made}" in said, "two numbers, and the reason"
    widths = [float(width) for width in re.findall(r"width:([\d.]+)%", said)]
    assert sum(widths) == pytest.approx(100, abs=0.1), "bars on a scale of 0 to 100 %, the others included"
    offered = [json.loads(each.replace("&quot;", '"')) for each in re.findall('data-instead="(.*?)"', said)]
    chances = {row.token: row.raw_probability for row in rows}
    assert drawn.token in [each["id"] for each in offered]
    assert all(each["chance"] == pytest.approx(chances[each["id"]], rel=1e-4) for each in offered)
    cut = sum(row.removed_by == "top-k" for row in rows)
    assert table.count("cut off by top-k<") == cut > 0 and table.count("<tr>") == 1 + len(rows)
    assert "cut off by top-k<" in said and "others" not in said, "all others have nothing"
    chosen, _ = opened(CHECKPOINT, text.up_to(3, chosen=True), LOCAL)
    assert "You chose" in chosen and "was sampled" not in chosen
    assert "<b>&" not in said and "&lt;" in said and "<b><bdi><" not in said
    assert label_of(TOKENIZER, TOKENIZER.encode("\n")[0]) == "⏎" and label_of(TOKENIZER, 10**6) == "#1000000"


@pytest.mark.parametrize(
    "wrong",
    [
        None, [], {}, {"prompt": []}, {"prompt": ["x"]}, {"prompt": [float("inf")]}, {"prompt": [True]},
        {"tokens": [999]}, {"tokens": [-1]}, {"tokens": [1] * 10**5}, {"tokens": 7}, {"rules": {"temperature": -1}},
        {"rules": {"os": "system"}}, {"rules": []}, {"start": -1}, {"start": 99}, {"start": "x"}, {"step": 7},
        {"step": None}, {"precision": "int1"}, {"precision": []}, {"prompt": [1] * 10**5},
    ],
)  # fmt: skip
def test_what_no_page_sends_back_is_refused_in_a_sentence(panel, wrong):
    sent = panel.text(new_tokens=5).up_to(3)
    with pytest.raises(ValueError, match="Press Generate"):
        Beginning.read({**sent, **wrong} if isinstance(wrong, dict) and wrong else wrong, PUBLIC, CHECKPOINT)


# ---- the panel -------------------------------------------------------------------------------------------------------


def test_the_panel_opens_with_a_text_that_is_written_once(panel):
    first = panel.made("text", prompt=None)
    text = Text(first["lines"])
    assert not first["recorded"] and len(text.ids[0]) == 200 and text.head["part"]["rules"]["seed"] == 0
    assert panel.made("text", prompt="xy", seed=9)["lines"][1:] == first["lines"][1:]
    shipped = Generating(load(SHIPPED_FOLDER / "stories"))
    assert shipped.made("text", model="shipped-stories")["recorded"]
    assert panel.shown().slots["text"].slow


def test_fields_that_make_no_sense_are_as_at_first():
    odd = {
        "temperature": [],
        "prompt": 7,
        "stop": {},
        "choice": "x",
        "game": {},
        "precision": "int1",
        "unheard of": 1,
        "top_k": "many",
    }
    assert Selection.read(odd) == Selection()
    assert Selection(temperature=0).sampling(LOCAL).greedy
    assert Selection.first(PUBLIC).new_tokens == min(200, PUBLIC.new_tokens)


def test_a_game_is_played_by_bets_and_shows_no_token_before_its_bet(panel):
    chosen = {"model": "shipped-stories", "game": True}
    board = panel.made("game-board", **chosen)
    again = panel.shown(**chosen).slots["game-board"]
    assert not again.slow and again.make() == board and board["round"] == 0
    bet = {"game": board["game"], "round": 0, "choice": board["candidates"][0][0], "sure": "think"}
    panel.game.bet(panel.asked(**chosen, bet=bet))
    client, position = panel.client(), panel.made("game-board", **chosen)
    assert position["round"] == 1
    game, table = panel.game.games.seen(panel.visitor, "shipped-stories"), panel.made("game-summary", **chosen)
    assert "<th" in table and "gave “" in table and "of 10 points" in table, "the reason for the points"
    for player, one in game.rounds[0].bets.items():
        row = table.partition(f'<td class="of-{player}">{PLAYERS[player]}<')[2].partition("</tr>")[0]
        assert f">{percent(2.0**-one.bits, 0)}<".replace("<1", "&lt;1") in row
        assert f">{signed(game.points(player)[0], 0, plus=True)}<" in row
    for odd in [*NONSENSE, {"game": "", "round": 0, "choice": 1}, {**bet, "round": 1, "sure": "very"}, bet]:
        body = json.dumps({"visitor": panel.visitor, "selection": panel.asked(**chosen, bet=odd).selection})
        answer = client.post("/do/bet", content=body)
        assert answer.status_code in (200, 400) and not answer.json().keys() - {"problem"}, odd
        assert panel.made("game-board", **chosen) == position, odd
    panel.page.panels._acts["another-text"](panel.asked(**chosen))
    assert panel.made("game-board", **chosen)["game"] != board["game"]


def test_a_crowd_waits_for_its_turn_and_leaves_no_place_taken(panel):
    async def lines_of_a_crowd() -> tuple[list, list]:
        panel.writing._places = Places(1)
        first = panel.writing._lines(panel.asked(new_tokens=4000), None)
        second = panel.writing._lines(panel.asked(new_tokens=3), None)
        begun = [json.loads(await anext(first)), json.loads(await anext(second))]
        await first.aclose()
        rest = [json.loads(line) async for line in second]
        return begun, rest

    (head, waits), rest = asyncio.run(lines_of_a_crowd())
    assert "head" in head and waits == {"waiting": True} and "end" in rest[-1]
    assert len(panel.writing) == 0
    panel.writing._places = Places(64)


SALES = "Our pumps are quiet. Order two pumps today and save. We deliver on Monday. Each pump lasts ten years."


def page_with(tmp_path, tokenizer, text="", prompt="", sampled=""):
    """A page with one model that learned this own text and wrote words that it has not."""
    history = History()
    history.samples.append({"step": 9, "prompt": sampled, "text": "Or twopum dada. Monda pumpu we que. Eac lasts ord."})
    source = Source(OWN_TEXT, text) if text else None
    model = Transformer(TINY.replace(vocab_size=tokenizer.vocab_size))
    registry = Registry(small_limits(), shipped=tmp_path / "none")
    about = {"prompt": prompt, "language": None}
    model_id = registry.add(ANNA, Checkpoint(model, tokenizer, history, "Run 1", about))
    board = SimpleNamespace(source_of=lambda checkpoint: source)
    return SimpleNamespace(registry=registry, limits=small_limits(), board=board), model_id


def test_a_model_of_an_own_text_is_offered_words_of_that_text(tmp_path):
    page, model_id = page_with(tmp_path, CharTokenizer.from_text(SALES), text=SALES[3:62], sampled="O")
    found = suggestions(page, model_id, ANNA)
    assert "Once upon a time" not in found and found[0] == "Order two pumps today"
    whole = set(SALES.replace(".", "").split())
    assert all(set(s.replace(".", "").split()) <= whole for s in found if len(s) > 1), f"words are cut: {found}"
    page, model_id = page_with(tmp_path, CharTokenizer.from_text(SALES), sampled="Our pumps")
    assert suggestions(page, model_id, ANNA) == ["Our pumps"], "nothing that it wrote stands in for an unknown text"
    own = build_tokenizer("bpe", SALES, vocab_size=300)
    page, model_id = page_with(tmp_path, own, text=SALES, prompt="Mia lived by the sea.", sampled="�����")
    found = suggestions(page, model_id, ANNA)
    assert found[0] == "Order two pumps today" and all(word in SALES for each in found for word in each.split())
    page, model_id = page_with(tmp_path, own, text=SALES, prompt="two pumps Monday")
    assert suggestions(page, model_id, ANNA)[0] == "two pumps Monday"


@pytest.mark.parametrize("name", ["prose", "sentences"])
def test_a_shipped_model_is_offered_words_of_its_text(tmp_path, name):
    registry = Registry(small_limits())
    page = SimpleNamespace(registry=registry, board=SimpleNamespace(source_of=lambda checkpoint: None))
    text = learned(None, registry.get(f"shipped-{name}", ANNA))
    found = suggestions(page, f"shipped-{name}", ANNA)
    assert len(found) > 2 and all(begun in " ".join(text.split()) for begun in found[1:])


@pytest.mark.parametrize("tokenizer", [CharTokenizer("αβγ"), WordTokenizer(["pump", "two"]), CharTokenizer("a b")])
def test_nothing_is_offered_that_the_model_cannot_read(tmp_path, tokenizer):
    page, model_id = page_with(tmp_path, tokenizer, prompt="Mia lived by the sea.", text="Mia has it.\nTom is sad.\nO")
    (only,) = suggestions(page, model_id, ANNA)
    assert only.strip() and not tokenizer.unknown_parts(only)
