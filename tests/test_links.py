"""Links say what they were made from, to whoever reads them; broken and hostile ones end in a sentence."""

import base64
import json
import re
import zlib

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from playground.devices import machine_kind
from playground.links import LinkError, RunCard, chosen_losses, letters, text_hash
from playground.links import card as cards
from playground.model import PRESETS, ModelConfig
from playground.training import RECIPES, TrainConfig
from playground.words.links import repetition_in_words

MACHINE = "cpu AVX512 float32, 2 threads, torch 2.13.0+cpu, Some Processor 9000"


def card(**changes) -> RunCard:
    """A run such as a visitor makes."""
    made = {
        "text": "stories",
        "model": PRESETS["small"],
        "training": RECIPES["small"].replace(
            steps=300, seed=7, eval_windows=128, sample_prompt="Mia lived by the “sea”"
        ),
        "text_hash": "0123456789abcdef",
        "losses": ((0, 3.4, 3.5), (150, 1.5, 1.6), (300, 1.2, 1.2345)),
        "machine": MACHINE,
    }
    return RunCard(**{**made, **changes})


def packed(record) -> str:
    """Letters of any record, with a right checksum, as somebody who has read the program can make them."""
    data = record if isinstance(record, bytes) else json.dumps(record).encode()
    return letters.packed(data)


def record_of(made: RunCard) -> dict:
    """What a card's letters hold."""
    return json.loads(letters.unpacked(made.to_letters()))


@settings(max_examples=25)
@given(
    preset=st.sampled_from(sorted(PRESETS)),
    model=st.fixed_dictionaries(
        {},
        optional={
            "n_layers": st.integers(1, 12), "causal": st.booleans(), "dropout": st.floats(0, 0.9),
            "n_experts": st.sampled_from([0, 2, 8]), "activation": st.sampled_from(["relu", "swiglu"]),
        },
    ),
    training=st.fixed_dictionaries(
        {},
        optional={
            "steps": st.integers(1, 9999), "seed": st.integers(0, 2**31), "learning_rate": st.floats(1e-6, 1),
            "optimizer": st.sampled_from(["adamw", "muon"]), "sample_prompt": st.text(max_size=60),
        },
    ),
    losses=st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 50), st.floats(0, 50)), max_size=6),
)  # fmt: skip
def test_a_card_says_the_same_after_the_journey_and_fits_a_url(preset, model, training, losses):
    config = PRESETS[preset].replace(**{**model, "experts_per_token": 2, "moe_every": 1})
    trained = TrainConfig().replace(**training)
    made = card(model=config, training=trained, losses=tuple((s, round(a, 4), round(b, 4)) for s, a, b in losses))
    written = made.to_letters()
    again = RunCard.from_letters(written)
    assert again.model.replace(vocab_size=1) == config.replace(vocab_size=1)
    assert again.training == trained and again.losses == made.losses and again.differing(made) == []
    assert len(written) < 900 and re.fullmatch(r"[\w-]+", written, re.ASCII)


def test_equal_settings_and_the_nearest_preset_make_the_same_short_letters():
    a = card(training=TrainConfig(weight_decay=0.0, gradient_clip=1.0))
    b = card(training=TrainConfig(weight_decay=0, gradient_clip=1))
    assert a.to_letters() == b.to_letters()
    record = record_of(card(model=PRESETS["tiny"].replace(n_layers=3), training=RECIPES["tiny"]))
    assert record["base"] == "tiny" and record["model"] == {"n_layers": 3} and "training" not in record


def test_a_link_made_long_ago_is_read_and_one_from_before_a_preset_changed_is_refused(monkeypatch):
    """Letters as they stand in somebody's mail: whatever changes here, they say the same."""
    written = (
        "1q4Zpg_Cx2gW1wdjA0tDA3ABut4GhkbGJqZm5hWViUnJKapoSmk-QkgLEV-Y6GLHom5moVIsaHMYmBkAtxqZAMlYn2hCYqgxBbB1DM4gIyEB"
        "DI7AIyP5YoAOxxge-GDA0VqoFAKKza58"
    )
    found = RunCard.from_letters(written)
    assert found.losses == card().losses and found.text_hash == card().text_hash and found.training.seed == 7
    assert found.differing(card()) == [] and found.machine == "cpu AVX512 float32, 2 threads, torch 2.13"
    written = card().to_letters()
    changed = PRESETS["small"].replace(d_model=256)
    monkeypatch.setitem(cards.PRESETS, "small", changed)
    with pytest.raises(LinkError, match=r"settings.*changed"):
        RunCard.from_letters(written)


def test_only_what_others_will_meet_is_promised_and_a_text_is_known_by_its_hash():
    evaluations = {
        "step": [0, 50, 100, 150, 200, 250, 300, 350, 400, 437],
        "train_loss": [3.0] * 9 + [1.0],
        "val_loss": [3.0] * 8 + [float("nan"), 1.0],
    }
    kept = chosen_losses(evaluations, every=50, steps=1000)
    steps = [row[0] for row in kept]
    assert steps[0] == 0 and steps[-1] == 350 and len(steps) == cards.MAX_LOSSES, "neither a stop nor a NaN"
    assert [row[0] for row in chosen_losses(evaluations, every=50, steps=437)][-1] == 437
    assert text_hash("one\r\ntwo") == text_hash("one\ntwo") != text_hash("one\ntwo ")
    from playground.data import corpus_from_text

    text = "the sun rises and the sun sets. " * 10
    assert corpus_from_text(text).sha256.startswith(text_hash(text))


@settings(max_examples=40)
@given(st.data())
def test_whatever_happens_to_a_link_on_its_way_is_noticed(data):
    written = card().to_letters()
    at = data.draw(st.integers(0, len(written) - 1))
    other = data.draw(st.sampled_from("AZaz09-_%<"))
    for damaged in (
        written[:at],
        written[:at] + other + written[at + 1 :],
        written + other,
        written[at:] + written[:at],
    ):
        if damaged != written:
            with pytest.raises(LinkError):
                RunCard.from_letters(damaged)


LETTERS = "1" + "A" * letters.MAX_LETTERS


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("", "lost.*changed"),
        (LETTERS, "2,000 letters"),
        ("2" + card().to_letters()[1:], "lost.*changed"),
        (packed(b"[" * 3000), "no run"),
        (packed(b"x" * letters.MAX_JSON + b"y"), "lost.*changed"),
        ("1" + base64.urlsafe_b64encode(zlib.compress(b"0" * 10**6)[2:-4] + b"1234").decode().rstrip("="), "lost"),
        (packed([1, 2]), "no run"),
        (packed({}), "no run"),
        (packed(b'{"base": NaN}'), "no run"),
    ],
)  # fmt: skip
def test_letters_that_hold_no_run_are_refused(written, complaint):
    with pytest.raises(LinkError, match=complaint):
        RunCard.from_letters(written)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"base": "gpt-9"}, "no run"),
        ({"news": 1}, "no run"),
        ({"text": ["klingon"]}, "no run"),
        ({"text": ["hub"]}, "no run"),
        ({"text": ["hub", "a/b", "c", "dungeon"]}, "no run"),
        ({"tokenizer": "telepathy"}, "no run"),
        ({"vocab_size": 10**9}, "no run"),
        ({"hash": "<script>"}, "no run"),
        ({"machine": "cpu\x00"}, "no run"),
        ({"model": {"n_heads": 3}}, "d_model 128.*n_heads"),
        ({"model": {"d_model": "128"}}, "settings.*sense"),
        ({"model": {"dropout": 1e999}}, "sense|no run"),
        ({"model": {"__class__": 1}}, "settings.*sense"),
        ({"model": {"vocab_size": 10**9}}, "settings.*sense"),
        ({"training": {"device": "cuda:7"}}, "no run"),
        ({"training": {"steps": -1}}, "settings.*sense"),
        ({"training": {"sample_prompt": "x" * 301}}, "no run"),
        ({"training": {"sample_prompt": 3}}, "sense|no run"),
        ({"print": 0}, "changed since"),
        ({"losses": [[0, 1]]}, "no run"),
        ({"losses": [[0, 1, 1.5]]}, "no run"),
        ({"losses": [[i, 1, 1] for i in range(7)]}, "no run"),
    ],
)
def test_a_forged_record_with_a_right_checksum_is_refused_with_a_sentence(changes, complaint):
    with pytest.raises(LinkError, match=complaint):
        RunCard.from_letters(packed({**record_of(card()), **changes}))


def test_sentences_never_carry_a_flood():
    with pytest.raises(LinkError) as caught:
        RunCard.from_letters(packed({**record_of(card()), "text": ["x" * 5000]}))
    assert len(str(caught.value)) < 200


def test_a_kind_of_machine_and_differences_of_a_run_are_named():
    kind = machine_kind("cpu", "float32", 3)
    assert torch.__version__ in kind and torch.backends.cpu.get_cpu_capability() in kind and "float32" in kind
    assert "3 threads" in kind and kind.split(", ")[-1].strip()
    assert len(kind) <= cards.MAX_MACHINE and machine_kind("cpu", "bfloat16") != kind
    again = RunCard.from_letters(card(machine=kind).to_letters())
    assert again.machine == kind
    for last, tone in ((1.23449, "good"), (1.23451, "good"), (1.2395, "warning")):  # the card says 1.2345
        rows = {"step": [0, 150, 300], "val_loss": [3.5, 1.6, last]}
        assert repetition_in_words(card(), rows, MACHINE)[0] == tone
    gone = repetition_in_words(card(), {"step": [0, 150, 300], "val_loss": [3.5, 1.61, 1.2345]}, MACHINE)[1]
    assert "1.6100 at step 150, 1.6000 in the link" in gone
    mine = card(training=card().training.replace(eval_every=7, sample_every=3, sample_prompt="x"))
    assert card().differing(mine) == []
    other = card(text="copy", model=ModelConfig(n_layers=2, d_model=128), training=card().training.replace(seed=8))
    assert {"text", "n_layers", "seed"} <= set(card().differing(other))
