"""Lesson files: those that ship can be read and tell what is so; what a file may not hold is refused with its place."""

import copy
import itertools
import json
import math
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from playground.data.tokenizers import CharTokenizer
from playground.inspection.edits import EditCell, edits_tap
from playground.inspection.lens import logit_lens
from playground.inspection.look import look
from playground.interventions.direct import readout, written_by_head
from playground.lessons import reading
from playground.lessons.facts import FACTS, favourite, value_of, written
from playground.lessons.judging import checked, holds, judge, missing, said_of
from playground.lessons.progress import Progress
from playground.lessons.reading import Lesson, all_lessons, find_lesson
from playground.lessons.scene import NotYet, Scene
from playground.lessons.vocabulary import PLACES
from playground.model import ModelConfig, Transformer, trace
from playground.service.models import SHIPPED_FOLDER
from playground.storage import Checkpoint, load
from playground.training import Evaluated, History

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "lessons.md").read_text(encoding="utf-8")


def a_file(**changes) -> dict:
    """A small lesson that is right; changes of its second step, or of the lesson with `lesson=`."""
    step = {
        "id": "n0",
        "title": "A title",
        "say": "Words.",
        "ask": {"question": "Which?", "choices": {"a": "This", "b": "That"}, "right": "a"},
    }
    steps = [{**copy.deepcopy(step), "id": f"n{i}"} for i in range(5)]
    whole = {"number": 50, "title": "Mine", "about": "About it", "steps": steps, **changes.pop("lesson", {})}
    steps[1] = {name: value for name, value in {**steps[1], **changes}.items() if value is not None}
    return whole


def read(values: dict) -> Lesson:
    return Lesson.model_validate({**values, "id": "mine"})


NUMBER = {"question": "How much?", "right": "loss", "number": {"least": 0, "most": 4, "step": 0.1, "near": 0.15}}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"lesson": {"code": "print(1)"}}, "code\n  Extra inputs are not permitted"),
        ({"lesson": {"steps": []}}, "steps\n  List should have at least 1 item"),
        ({"ask": None}, "something to guess (“ask”) or to do (“done”)"),
        ({"point": "#curve"}, "steps.1.point\n  Input should be 'train button', 'curve'"),
        ({"set": {"train.code": 1}}, "steps.1.set.`train.code`.[key]\n  Input should be 'tab'"),
        ({"set": {"tab": "glossary"}}, "“tab” is one of train"),
        ({"say": "It is {price}."}, "step n1: there is no fact called “price”"),
        ({"say": "It is {loss"}, "steps.1.say\n  Value error, a “{” is not closed"),
        ({"done": {}}, "steps.1.done\n  Value error, “done” needs one of run, pair"),
        ({"done": {"pressed": "curve", "shown": "curve"}}, "“done” needs one of run, pair"),
        ({"show": [{"say": "x", "when": "chosen.word < 2"}]}, "“chosen.word < 2” compares a word: use “is”"),
        ({"show": [{"say": "x", "when": "loss is < 2"}]}, "no comparison such as"),
        ({"show": [{"say": "x", "when": "loss < cheap"}]}, "no fact called “cheap”"),
        ({"ask": {"question": "Which?", "choices": {"a": "This", "b": "That"}, "right": "c"}}, "no fact called “c”"),
        ({"ask": {"question": "Which?", "right": "a"}}, "“ask” needs “choices” or “number”"),
        ({"ask": {**NUMBER, "right": "word"}}, "“right” has to be a number"),
        (
            {"ask": {**NUMBER, "number": {"least": 0, "most": 1, "step": 0}}},
            "steps.1.ask.number\n  Value error, the scale",
        ),
        ({"ask": {**NUMBER, "number": {"least": 0, "most": 1}}}, "steps.1.ask.number.step\n  Field required"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(changes, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        read(a_file(**changes))


def test_a_teachers_folder_joins_and_a_broken_file_is_left_out(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.json").write_text(json.dumps(a_file()), encoding="utf-8")
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    (tmp_path / "list.json").write_bytes(b"[]")
    (tmp_path / "binary.json").write_bytes(b"\xff")
    (tmp_path / "first-model.json").write_text(json.dumps(a_file()), encoding="utf-8")
    monkeypatch.setenv(reading.VARIABLE, str(tmp_path))
    all_lessons.cache_clear()
    try:
        assert find_lesson("mine").number == 50 and find_lesson(1).title == "Your first model"
        assert capsys.readouterr().err.count("is left out: ") == 3
    finally:
        all_lessons.cache_clear()


def test_the_documentation_names_every_fact_and_place_and_its_file_is_a_step():
    assert not [name for name in FACTS if f"`{name}`" not in DOCS]
    assert not [name for name in PLACES if f"*{name}*" not in DOCS]
    example = json.loads(re.search(r"```json\n(.*?)```", DOCS, re.DOTALL)[1])
    example["steps"] = [{**example["steps"][0], "id": f"s{i}"} for i in range(5)]
    assert read(example).steps[0].ask.number.most == 4


# ---- guesses ---------------------------------------------------------------------------------------------------------


def test_a_guess_is_judged_by_its_distance():
    ask = read(a_file(ask={**NUMBER, "right": "1.74"})).steps[1].ask
    assert judge(Scene(), ask, 1.7).right
    assert judge(Scene(), ask, 3.0).words == "You said 3.0. It is 1.7."
    of_one = ask.model_copy(update={"number": ask.number.model_copy(update={"step": 1, "unit": "tokens"})})
    assert judge(Scene(), of_one, 1.0).words == "You said 1 token. It is 1.7."
    for wrong in (5, -1, True, float("nan"), "2", None, 1e999):
        with pytest.raises(ValueError, match="from 0 to 4"):
            checked(ask, wrong)


def test_a_question_waits_for_its_numbers():
    """Those that it names; and its answer, where answering is all there is to do."""
    unknown, known = NUMBER, {**NUMBER, "right": "times-500"}
    assert missing(Scene(), read(a_file(ask=unknown)).steps[1])
    assert not missing(Scene(), read(a_file(ask=known)).steps[1])
    assert not missing(Scene(), read(a_file(ask=unknown, done={"pressed": "curve"})).steps[1])
    assert missing(Scene(), read(a_file(ask=known, say="It is {loss}.")).steps[1])
    cases = [{"when": "loss < 2", "is": "a"}, {"is": "b"}]
    choice = {"question": "?", "choices": {"a": "A", "b": "B"}, "right": cases}
    assert missing(Scene(), read(a_file(ask=choice)).steps[1])
    loss = {"question": "?", "choices": {"loss": "A", "b": "B"}, "right": "loss"}
    assert not missing(Scene(), read(a_file(ask=loss)).steps[1]), "which is the name of a choice"


def test_numbers_that_do_not_decide_are_not_decided():
    cases = [{"when": "times-500 > 300", "is": "a"}]
    step = read(a_file(ask={"question": "?", "choices": {"a": "A", "b": "B"}, "right": cases})).steps[1]
    assert judge(Scene(), step.ask, "a").right is None
    scene = Scene()
    for more, worth in ((0.01, "unclear"), (0.03, "dearer"), (-0.03, "cheaper")):
        way = SimpleNamespace(name="int8", more=more, can_be_told=abs(more) > 0.02)
        scene.precision = lambda way=way: SimpleNamespace(ways=[way])
        assert value_of(scene, "bits-8-worth") == worth
    choices = {"up": "Up", "down": "Down", "alike": "Cannot tell."}
    scene = Scene()
    scene.pair = lambda: SimpleNamespace(verdict=SimpleNamespace(is_clear=False))
    for right in ("unclear", "winner"):
        step = read(a_file(ask={"question": "?", "choices": choices, "right": right})).steps[1]
        judged = [(each.right, each.words) for each in (judge(scene, step.ask, guess) for guess in choices)]
        assert judged == [(None, "Cannot tell."), (None, "Cannot tell."), (True, "Right: Cannot tell.")]
    cases = [{"when": "times-500 is 252", "say": "{times-500}"}, {"say": "never"}]
    with pytest.raises(NotYet, match="not there yet"):
        said_of(Scene(), read(a_file(show=["{loss}", cases])).steps[1], "b")
    step = read(a_file(show=[cases])).steps[1]
    told, judged = said_of(Scene(), step, "b")
    assert not judged.right and told == ["Not this time. The answer: This", "252"]


def test_facts_are_counted_and_a_loss_is_there_before_the_baselines():
    assert (value_of(Scene(), "times-500"), value_of(Scene(), "llama-cache")) == (252, 1)
    assert value_of(SimpleNamespace(generate_prompt="Tom lived "), "prompt") == "Tom lived␣"
    assert written("times-500", 381_750) == "381,750"
    assert holds(Scene(), read(a_file(done={"when": "times-500 > llama-cache"}, ask=None)).steps[1].done.when)
    scene, history = Scene(), History()
    history.add(Evaluated(3, 1.0, train_loss=1.5, val_loss=2.0))
    scene.run = lambda _: (SimpleNamespace(history=history, baselines=None), None)
    assert value_of(scene, "loss") == 2.0
    for name in ("uniform", "gap"):
        with pytest.raises(NotYet, match="baselines"):
            value_of(scene, name)


def test_balance_is_about_the_layer_whose_picture_is_shown():
    """The second one, whatever the first one does."""
    scene, config = Scene(), ModelConfig(vocab_size=3, d_model=16, n_layers=2, n_heads=2, n_experts=8)
    loads = {"with": ([0.125] * 8,), "without": ([0.5, 0.3, 0.1, *[0.02] * 5], [0.6, 0.4, *[0.0] * 6])}
    records = {k: [{"step": s, "load": [[1.0, *[0.0] * 7], row]} for s, row in enumerate(v)] for k, v in loads.items()}
    scene.balance = lambda kind: (config, SimpleNamespace(load=records[kind]))
    dense, moe = (
        config.replace(n_experts=0, d_ff=20, feedforward_bias=False),
        config.replace(d_expert=32, feedforward_bias=False),
    )
    sides = {"dense": SimpleNamespace(config=dense), "moe": SimpleNamespace(config=moe)}
    scene.pair = lambda: SimpleNamespace(sides=sides, speeds={"dense": 200.0, "moe": 129.0})
    assert value_of(scene, "moe-price") == "4.2 times the memory, and trains at 0.65 times the speed"
    assert value_of(scene, "used-compared") == "2 instead of 8"


def test_how_sure_it_is_of_a_word_is_the_product_of_its_tokens_shares():
    """On the processor in fp32."""
    tokenizer = CharTokenizer("abc")
    model = Transformer(ModelConfig(vocab_size=3, d_model=16, n_layers=1, n_heads=2, context_length=64), seed=1).eval()
    checkpoint = Checkpoint(model, tokenizer, History(), "mine")
    scene = Scene()
    scene.run, scene.lesson_prompt = lambda _: (SimpleNamespace(prompt=""), checkpoint), "abcab"
    ids = tokenizer.encode("abcab" + value_of(scene, "word"))
    shares = model(torch.tensor([ids])).logits[0].softmax(-1)
    product = math.prod(shares[i - 1, ids[i]].item() for i in range(5, len(ids)))
    assert value_of(scene, "sure") == pytest.approx(100 * product, rel=1e-3)


# ---- what a browser keeps --------------------------------------------------------------------------------------------


def test_progress_comes_back_as_it_was():
    lesson = find_lesson("why-a-cache")
    progress = Progress(lesson.id, 1, before={lesson.id: ["r" * 20]})
    answer = progress.answer(lesson, lesson.steps[0])
    answer.guess, answer.truth, answer.right, answer.done, answer.told = 18.0, 18.0, True, True, ("Right.",)
    again = Progress.from_dict(json.loads(json.dumps(progress.to_dict())))
    assert again == progress and again.ticked(lesson) == [True, *[False] * 4]


@pytest.mark.parametrize(
    "sent",
    [
        None, [], "x", {"answers": []}, {"lesson": "no", "step": 3}, {"lesson": ["why-a-cache"]},
        {"lesson": "why-a-cache", "step": 1e9, "before": {"why-a-cache": [1, "x" * 99]}},
        {"answers": {"why-a-cache": {"without": {"guess": "<b>", "told": ["x" * 10**6] * 99, "truth": {}}}}},
        {"answers": {"first-model": {"good": {"guess": ["good"]}, "nothing": {}}}},
    ],
)  # fmt: skip
def test_what_no_lesson_left_there_is_dropped(sent):
    progress = Progress.from_dict(sent)
    assert len(json.dumps(progress.to_dict())) < 20_000
    assert all(a.guess is None for steps in progress.answers.values() for a in steps.values())
    assert not any(progress.before.values())


def test_the_head_of_lesson_8_reads_the_k_where_an_earlier_head_has_brought_it():
    """On the processor in fp32. The query, made from “the”, needs nothing of the first sentence."""
    lesson, checkpoint = find_lesson("who-looks-at-whom"), load(SHIPPED_FOLDER / "stories")
    scene, earlier = lesson.scene, next(step.sets for step in lesson.steps if step.id == "earlier")
    prompt, layer, head, query, key = (scene[f"inspect.{x}"] for x in ("prompt", "layer", "head", "query", "key"))
    model, ids = checkpoint.model.float(), checkpoint.tokenizer.encode(prompt)
    assert (prompt[key - 1 : key + 1], query, len(ids)) == ("ki", len(prompt) - 1, len(prompt))

    all_heads = [*itertools.product(range(layer), range(model.config.n_heads))]
    k = checkpoint.tokenizer.encode("k")[0]

    def found(*cells: tuple[int, int], heads=all_heads, value: torch.Tensor | None = None) -> tuple[float, float]:
        changed = edits_tap([EditCell(*each, *cell, 0.0) for each in heads for cell in cells], model.config)

        def tap(name: str, at: int | None, x: torch.Tensor) -> torch.Tensor:
            if (name, at) == ("v", layer) and value is not None:
                x = x.clone()
                x[0, key, head] = value
            return changed(name, at, x)

        seen = trace(model, torch.tensor([ids]), edit=tap, names=["pattern", "v", "logits"])
        values.append(seen["v", layer][0, key, head])
        return float(seen["pattern", layer][0, head, query, key]), float(seen["logits"][0, query].softmax(-1)[k])

    values: list[torch.Tensor] = []
    assert min(found()) > 0.95 and max(found((key, key - 1))) < 0.2
    assert found(value=values[0])[1] > 0.95 > 0.4 > found(value=values[1])[1], "its value carries the “k”, too"
    one = (earlier["inspect.layer"], earlier["inspect.head"])
    assert earlier["inspect.query"] == key and max(found((key, key - 1), heads=[one])) < 0.2, "this head alone"
    whole = look(checkpoint, ids)
    assert whole.scores(layer)[head, query, key - 1] < 0, "the key of “k” itself does not fit"
    heads = (layer, head, query), (layer, 0, query), (*one, key)
    here, other, before = (SimpleNamespace(looked=(whole, *owner, key)) for owner in heads)
    assert value_of(here, "row-looks") == "after" != value_of(other, "row-looks"), "of another head, another is right"
    assert value_of(before, "attends-most") == "previous" and value_of(here, "attends-most") == "earlier"
    number = next(step.ask for step in lesson.steps if step.id == "number")
    assert number.number.least < value_of(here, number.right[0].says) < number.number.most
    above = whole.trace["logits"][0, query, k] - whole.trace["logits"][0, query].mean()
    z, mlp, stream = (
        whole.trace[name, at][0, -1] for name, at in (("z", layer), ("ff_out", layer), ("resid_post", layer))
    )
    reader = readout(model, stream, k)
    assert above / 2 < mlp @ reader < above and written_by_head(model, layer, z)[head] @ reader < mlp @ reader
    assert max(found(*((query, at) for at in range(query - 3, query)))) < 0.2, "without “the”"
    assert min(found(*itertools.product(range(prompt.index("T"), query + 1), range(prompt.index("T"))))) > 0.95


def test_lesson_3_stays_in_one_layer_and_tells_what_its_pictures_show():
    """On the processor in fp32."""
    lesson, checkpoint = find_lesson("one-tokens-journey"), load(SHIPPED_FOLDER / "stories")
    assert not any({"inspect.layer", "inspect.head"} & {*step.sets} for step in lesson.steps)
    checkpoint.model.float()
    seen = look(checkpoint, checkpoint.tokenizer.encode(lesson.scene["inspect.prompt"]))
    at = [lesson.scene[f"inspect.{each}"] for each in ("layer", "head", "query")]
    assert at[2] == seen.length - 1
    top = logit_lens(seen.model, seen.trace).best[0].tolist()
    assert [seen.token_label(top[at]) for at, token in enumerate(seen.tokens) if token == "s"] == ["e", "e"]
    here = SimpleNamespace(looked=(seen, *at, 0))
    assert value_of(here, "attends-most") == "earlier"
    assert "�" not in map(seen.token_label, top) and favourite(seen)[0] == "a"
