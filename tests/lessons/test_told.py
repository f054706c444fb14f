"""What lessons tell of the models that ship, held against them."""

import itertools
from types import SimpleNamespace

import torch

from playground.inspection.edits import EditCell, edits_tap
from playground.inspection.lens import logit_lens
from playground.inspection.look import look
from playground.lessons.facts import attends_most, favourite, value_of
from playground.lessons.reading import find_lesson
from playground.model import trace
from playground.service.models import SHIPPED_FOLDER
from playground.storage import load


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
    above = whole.trace["logits"][0, query, k] - whole.trace["logits"][0, query].mean()
    here = SimpleNamespace(looked=(whole, layer, head, query, key))
    assert value_of(here, "raises-most") == "mlp" and above / 2 < value_of(here, "mlp-raises") < above
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
    top = logit_lens(seen.model, seen.trace, torch.zeros(seen.length, dtype=torch.long)).best[0].tolist()
    assert [seen.token_label(top[at]) for at, token in enumerate(seen.tokens) if token == "s"] == ["e", "e"]
    assert "�" not in map(seen.token_label, top) and favourite(seen)[0] == "a"
