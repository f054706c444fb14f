"""Breaking: experts switched off, silenced, routes forced; what keeps experts in use, and runs without it."""

from __future__ import annotations

from typing import Any

import gradio as gr
import torch

from ....data import visible
from ....figures.breaking import cost_map, describe_costs
from ....figures.candidates import describe_next_tokens, next_tokens
from ....inspection.balance import Pull, pulls_on_routers
from ....inspection.cost import effect, expert_costs
from ....inspection.edits import Edit, ForceExpert, SwitchOffExperts, edits_tap
from ....inspection.routing import Station, expert_layers, routing_of
from ....kept import Kept
from ....storage import Checkpoint
from ....training.losses import window_losses
from ....words.numbers import signed
from ...chart import Chart, show
from ...gradio_fixes.lenient import LenientCheckboxGroup, LenientRadio
from ...page import QUIETLY
from ...prompts import read_prompt, suggestions
from ...quoted import quoting
from ...refusals import in_words, sentence
from ...theme import Cell, heading, notice, stat_cards, table
from ...widgets.clicks import cell_of
from . import unbalanced
from .texts import text_for
from .two_models import TwoModels

TITLE = "Break it: balance off, experts off, routes forced"
CANDIDATES = 8
LOSS_WINDOWS = 24
"""Of every loss here, so that a model has one."""
_kept = Kept(entries=64, megabytes=4)
WAYS = {
    "off": "Nobody may visit them: the router's next choice takes over",
    "silent": "Silence them: visited as before, but their answers count nothing",
    "force": "Send tokens to the first one, whatever the router says",
}


def build(two: TwoModels) -> None:
    """Edits on the chosen mixture first, then what balance asks of the routers, then runs without it."""
    page = two.page
    gr.HTML(
        heading(
            "Switch experts off, or force a route",
            "The model itself is never changed: an edit lives for one look and is gone with the next.",
        )
    )
    note = gr.HTML(elem_id="breaking-note")
    with gr.Row(equal_height=False):
        with gr.Column(scale=2, min_width=300):
            prompt = gr.Textbox("the wind", label="Prompt", lines=2, max_lines=5, elem_id="breaking-prompt")
            way = gr.Radio([(words, name) for name, words in WAYS.items()], value="off", label="How",
                           elem_id="breaking-way")  # fmt: skip
            layer = LenientRadio([("0", 0)], value=0, label="Layer", elem_id="breaking-layer")
            experts = LenientCheckboxGroup(
                [("0", 0)], value=[], label="Experts", info="Or click a cell of the map that the button below draws.",
                elem_id="breaking-experts",
            )  # fmt: skip
            visited = gr.HTML(elem_id="breaking-visited")
            last_only = gr.Checkbox(
                False,
                visible=False,
                label="Force the prompt's last token only",
                info="For the prediction; the loss is always that of a text whose tokens are all forced.",
            )
        with gr.Column(scale=3, min_width=320):
            cards = gr.HTML(elem_id="breaking-cards")
            chances = Chart(height=340, save_name="next-tokens", elem_id="breaking-next")
    worth = gr.Button("What is each expert worth? Switch off each in turn", elem_id="breaking-worth")
    costs = Chart(height=220, save_name="expert-costs", clickable=True, elem_id="breaking-costs")
    gr.HTML(
        heading(
            "What each balance term asks of the routers",
            "The real gradient on every router's weights, on this model and its text, each term taken by itself.",
        )
    )
    pulls = gr.HTML(elem_id="breaking-pulls")
    unbalanced.build(two)

    def change(visitor, model_id, words: str, how: str, number: Any, chosen: Any, last: bool) -> tuple[str, Any, str]:
        try:
            checkpoint = page.registry.get(model_id, visitor)
            model = checkpoint.model
            ids, _ = read_prompt(page, checkpoint, words)
            ids = ids[-checkpoint.config.context_length :]
            edit = edit_for(how, number, chosen, (len(ids) - 1,) if last else None)
            found = effect(model, torch.tensor([ids]), edits_tap([edit], model.config))
            top = torch.cat([found.after.topk(CANDIDATES // 2).indices, found.before.topk(CANDIDATES).indices])
            kept = sorted(dict.fromkeys(top.tolist()), key=lambda t: -found.before[t].item())[:CANDIDATES]
            labels = labels_of(checkpoint, kept)
            after, before = found.after[kept].tolist(), found.before[kept].tolist()
            picture = show(
                next_tokens(labels, after, before, names=("as it is", "changed")),
                describe_next_tokens(labels, after, before),
            )
            windows, what = text_for(page, checkpoint)
            windows = windows[:LOSS_WINDOWS]
            # a position of the prompt means nothing elsewhere: the loss is taken with every token forced
            everywhere = edits_tap([edit_for(how, number, chosen)], model.config)
            plain = window_losses(model, windows[:, :-1], windows[:, 1:]).mean
            changed = window_losses(model, windows[:, :-1], windows[:, 1:], tap=everywhere).mean
            stations = routing_of(model, torch.tensor([ids])).stations(len(ids) - 1)
            station = next(s for s in stations if s.layer == number)
            recorded = (checkpoint.history.evaluations["val_loss"] or [None])[-1]
            return (
                _cards(plain, changed, found.divergence, what, recorded),
                picture,
                _way_of_last(labels_of(checkpoint, ids), station),
            )
        except ValueError as problem:  # in the place of numbers that belong to another choice
            return notice(sentence(str(problem)), "error"), None, ""

    change = quoting(change, page.registry, prompt="words", change="how", layer="number")

    def another_model(visitor, model_id) -> dict:
        try:
            checkpoint = page.registry.get(model_id, visitor)
            layers = expert_layers(checkpoint.config)
        except ValueError as problem:
            empty = {cards: "", chances: None, costs: None, pulls: ""}
            return {note: notice(f"{problem}.", "warning"), visited: "", **empty}
        E, K, known = (
            checkpoint.config.n_experts,
            checkpoint.config.experts_per_token,
            suggestions(page, model_id, visitor)[0],
        )
        start, numbers = layers[-1], [(str(e), e) for e in range(E)]
        ids = checkpoint.tokenizer.encode(known)[-checkpoint.config.context_length :]
        first = routing_of(checkpoint.model, torch.tensor([ids])).stations(len(ids) - 1)[-1].experts[0]
        how = "off" if K < E else "silent"  # where every expert is visited, none can take over
        shown = dict(zip(drawn, change(visitor, model_id, known, how, start, [first], False)))
        answer = {
            note: "" if K < E else notice(
                f"Every token visits all {E} experts, so no next choice can take over: here they are silenced."
            ),
            prompt: known, costs: None, way: how,
            last_only: gr.Checkbox(False, visible=how == "force"),
            layer: gr.Radio([(str(n), n) for n in layers], value=start),
            experts: gr.CheckboxGroup(numbers, value=[first]),
        }  # fmt: skip
        return {**answer, **shown, pulls: _pulls(checkpoint, layers)}

    def _pulls(checkpoint, layers) -> str:
        try:
            windows, _ = text_for(page, checkpoint)
        except ValueError as problem:
            return notice(f"{problem}.")
        windows = windows[:LOSS_WINDOWS]
        return pulls_table(
            pulls_on_routers(checkpoint.model, windows[:, :-1], windows[:, 1:]), layers,
            all_visited=checkpoint.config.experts_per_token == checkpoint.config.n_experts,
        )  # fmt: skip

    def each(visitor, model_id) -> Any:
        with in_words():
            checkpoint = page.registry.get(model_id, visitor)
            windows, what = text_for(page, checkpoint)
            x, y = windows[:LOSS_WINDOWS, :-1], windows[:LOSS_WINDOWS, 1:]
            model, layers = checkpoint.model, expert_layers(checkpoint.config)
            found = _kept.get(what, lambda: expert_costs(model, x, y), owner=model)
            given, judged = (found.costs.numpy(), found.margins.numpy(), layers, found.before), f"{y.numel():,} tokens"
            return show(cost_map(*given), describe_costs(*given, f"{judged} of {what}", found.first.numpy()))

    each = quoting(each, page.registry)
    drawn = [cards, chances, visited]
    inputs = [page.visitor, two.moe, prompt, way, layer, experts, last_only]
    two.on_change(another_model, inputs[:2], [note, prompt, way, layer, experts, last_only, *drawn, costs, pulls])
    for event in (prompt.submit, prompt.blur, way.input, layer.input, experts.input, last_only.input):
        event(change, inputs, drawn, **QUIETLY)
    way.input(lambda how: gr.Checkbox(visible=how == "force"), way, last_only, **QUIETLY)
    worth.click(each, inputs[:2], costs, concurrency_limit=2, api_visibility="private")

    def clicked(visitor, model_id, event: gr.EventData):
        with in_words():
            config = page.registry.get(model_id, visitor).config
            layers = expert_layers(config)
            row, column = cell_of(event, rows=len(layers), columns=config.n_experts)
            return layers[row], [column]

    costs.select(clicked, inputs[:2], [layer, experts], **QUIETLY).success(change, inputs, drawn, **QUIETLY)


def edit_for(how: str, layer: Any, experts: Any, positions: tuple[int, ...] | None = None) -> Edit:
    """The edit that the controls describe. Raises ValueError for what none can be."""
    chosen = tuple(experts or ())
    if not all(isinstance(e, int) and not isinstance(e, bool) for e in [layer, *chosen]):
        raise ValueError("Choose a layer and experts by their numbers")
    if how in ("off", "silent"):
        return SwitchOffExperts(layer, chosen, replaced=how == "off")
    if how != "force":
        raise ValueError(f"Choose what to do with the experts: {', '.join(WAYS)}")
    if not chosen:
        raise ValueError("Choose the expert to send tokens to")
    return ForceExpert(layer, chosen[0], positions)


def pulls_table(pulls: dict[str, Pull], layers: tuple[int, ...], *, all_visited: bool = False) -> str:
    """Value and gradient length of each term, as an HTML table with a sentence on what it shows.

    Args:
        all_visited: whether every token visits every expert, so that no load can move.
    """
    names = {"loss": "cross-entropy", "switch": "Switch loss", "constant": "the constant"}
    rows = [
        (names[name], Cell(f"{pull.value:.4f}", pull.value), *(Cell(f"{g:.1e}", g) for g in pull.gradient_norms))
        for name, pull in pulls.items()
    ]
    constant, switch = max(pulls["constant"].gradient_norms), max(pulls["switch"].gradient_norms)
    words = (
        f"The constant (n · Σ mean probability · 1/n, from a well-known walkthrough) is {pulls['constant'].value:.4f} "
        f"whatever the routers do, since probabilities sum to 1: its longest gradient, {constant:.0e}, is rounding. "
    )
    if all_visited or switch <= 10 * constant:
        why = "every token visits every expert, so no load can move" if all_visited else "it moves no load here"
        words += f"So is that of the Switch loss (Fedus et al. 2021), {switch:.0e}: {why}."
    else:
        words += (
            f"The Switch loss (Fedus et al. 2021) pulls with {switch:.0e}, so it can move load from one expert to "
            "another."
        )
    head = ("term", "its value", *(f"layer {layer}" for layer in layers))
    return table(head, rows, save="balance-gradients") + notice(words)


def labels_of(checkpoint: Checkpoint, ids: list[int]) -> list[str]:
    """Tokens as visible text."""
    return [visible(checkpoint.tokenizer.token_text(t)) for t in ids]


def _way_of_last(tokens: list[str], station: Station) -> str:
    """Where the prompt's last token goes by itself, which is what to break."""
    visits = " and ".join(f"{e} ({w:.2f})" for e, w in zip(station.experts, station.weights))
    return notice(f"By itself, the last token “{tokens[-1]}” visits expert {visits} in layer {station.layer}.")


def _cards(plain: float, changed: float, divergence: float, what: str, recorded: float | None) -> str:
    elsewhere = "" if recorded is None else f"; {recorded:.4f} on the text that its run was judged by"
    return stat_cards(
        [
            ("loss as it is", f"{plain:.4f}", f"nats per token, {what}{elsewhere}"),
            ("loss changed", f"{changed:.4f}", f"{signed(changed - plain, 4, plus=True)} nats"),
            ("shift of the next token", f"{divergence:.4f}", "KL divergence in nats, after the prompt"),
        ]
    )
