"""What lessons tell of the models that ship, held against them."""

import itertools

import torch

from playground.inspection.edits import EditCell, edits_tap
from playground.inspection.lens import logit_lens
from playground.inspection.look import look
from playground.inspection.walk import step
from playground.lessons.facts import attends_most, favourite
from playground.lessons.reading import find_lesson
from playground.model import trace
from playground.service.models import SHIPPED_FOLDER
from playground.storage import load


def test_the_head_of_lesson_8_reads_the_k_where_earlier_layers_have_brought_it():
    """On the processor in fp32. The query, made from “the”, needs nothing of the first sentence."""
    scene, checkpoint = find_lesson("who-looks-at-whom").scene, load(SHIPPED_FOLDER / "stories")
    prompt, layer, head, query, key = (scene[f"inspect.{x}"] for x in ("prompt", "layer", "head", "query", "key"))
    model, ids = checkpoint.model.float(), checkpoint.tokenizer.encode(prompt)
    assert (prompt[key - 1 : key + 1], query, len(ids)) == ("ki", len(prompt) - 1, len(prompt))

    def found(*cells: tuple[int, int]) -> tuple[float, float]:
        heads = itertools.product(range(layer), range(model.config.n_heads))
        tap = edits_tap([EditCell(i, j, *cell, 0.0) for i, j in heads for cell in cells], model.config)
        seen = trace(model, torch.tensor([ids]), edit=tap, names=["pattern", "logits"])
        k = checkpoint.tokenizer.encode("k")[0]
        return float(seen["pattern", layer][0, head, query, key]), float(seen["logits"][0, query].softmax(-1)[k])

    assert min(found()) > 0.95 and max(found((key, key - 1))) < 0.2
    assert look(checkpoint, ids).scores(layer)[head, query, key - 1] < 0, "the key of “k” itself does not fit"
    assert max(found(*((query, at) for at in range(query - 3, query)))) < 0.2, "without “the”"
    assert min(found(*itertools.product(range(prompt.index("T"), query + 1), range(prompt.index("T"))))) > 0.95


def test_lesson_3_stays_in_one_layer_and_tells_what_its_pictures_show():
    """On the processor in fp32."""
    lesson, checkpoint = find_lesson("one-tokens-journey"), load(SHIPPED_FOLDER / "stories")
    assert not any({"inspect.layer", "inspect.head"} & {*step.sets} for step in lesson.steps)
    checkpoint.model.float()
    seen = look(checkpoint, checkpoint.tokenizer.encode(lesson.scene["inspect.prompt"]))
    at = [lesson.scene[f"inspect.{each}"] for each in ("layer", "head", "query")]
    assert at[2] == seen.length - 1 and attends_most(seen, *at, 0) == "earlier"
    assert seen.tokens[step(seen, "mlp", *at, 0).facts["elsewhere"][0]] == "s", "a neuron that looks for an “s”"
    top = logit_lens(seen.model, seen.trace, torch.zeros(seen.length, dtype=torch.long)).best[0].tolist()
    assert [seen.token_label(top[at]) for at, token in enumerate(seen.tokens) if token == "s"] == ["e", "e"]
    assert "�" not in map(seen.token_label, top) and favourite(seen)[0] == "a"
