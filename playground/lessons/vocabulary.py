"""The words a lesson file may use: places on the page, controls it may set or ask for, and what counts as done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Place:
    """Something on the page that a step points at."""

    selector: str
    title: str
    tab: str = ""
    view: str = ""
    """The view of Inspect that it stands in."""
    fold: str = ""
    """The id of the accordion that it stands in."""
    opens: tuple[tuple[str, Any], ...] = ()
    """Fields of its panel's selection that bring it to light, and their values."""


def _places(
    tab: str, view: str = "", fold: str = "", opens: tuple[tuple[str, Any], ...] = (), **known: tuple[str, str]
) -> dict[str, Place]:
    return {
        name.replace("_", " "): Place(selector, title, tab, view, fold, opens)
        for name, (selector, title) in known.items()
    }


PLACES: dict[str, Place] = {
    "models": Place("#model", "the list of models"),
    **_places(
        "train",
        train_button=("#train-button", "the Train button"),
        source=("#source", "what it should learn"),
        size=("#size", "the size"),
        curve=("#curve", "the loss curve"),
        curve_words=("#curve .chart-words", "what is said of the curve"),
        run=("#status", "the run's numbers"),
        ladder=("#rungs", "the ladder under the curve"),
        samples=("#samples", "what it writes"),
        skill=("#skill", "how much of it is right"),
        next_tokens=("#predictions", "what comes next"),
        talk=("#talk", "the button “Talk to it”"),
        use_best=("#use-best", "the button “Use step …”"),
        own_text=("#text", "your own text"),
    ),
    **_places(
        "generate",
        generate_button=("#generate-panel .generate-start", "the Generate button"),
        prompt=("#generate-panel textarea[name=prompt]", "the prompt"),
        written_text=("#generate-panel .written", "the text that was written"),
        written_words=("#generate-panel .written-said", "what is said of that text"),
        temperature=("#generate-panel .temperature", "the temperature"),
        choice=("#generate-panel [data-slot=choice]", "the choice behind a token"),
        choice_table=("#generate-panel .scores", "its table"),
        why_button=("#generate-panel .why-button", "the button “Why?”"),
        copied_pieces=("#generate-panel [data-slot=why-copied]", "the copied pieces"),
        passages=("#generate-panel .why-passage", "the passages behind it"),
        prove_it=("#generate-panel [data-slot=why-proof]", "the button “Prove it”"),
        proof=("#generate-panel [data-slot=why-proven]", "the proof"),
    ),
    **_places(
        "generate",
        opens=(("advanced", True),),
        same_again=("#generate-panel .check:has([name=same_again])", "“Repeat exactly”"),
    ),
    **_places(
        "generate",
        opens=(("game", True),),
        bets=("#generate-panel [data-slot=game-board]", "the text to bet on"),
        last_bet=("#generate-panel [data-slot=game-result]", "the last round"),
        bits=("#generate-panel [data-slot=game-chart]", "the curve of bits"),
        bets_summary=("#generate-panel [data-slot=game-summary]", "everybody's points"),
    ),
    **_places(
        "generate",
        opens=(("experiments", True),),
        compare_temperatures=("#generate-panel .compare-temperatures", "the button “Compare”"),
        four_temperatures=("#generate-panel [data-slot=heat-texts]", "the four temperatures"),
        measure_precision=("#generate-panel .measure-precision", "the button “Measure this model in all three”"),
        precisions=("#generate-panel [data-slot=bits-table]", "fp32, bf16 and int8 beside each other"),
        precision_words=("#generate-panel [data-slot=bits-said]", "what is said of them"),
        levels=("#generate-panel [data-slot=bits-levels]", "the weights on their levels"),
        number_receipt=("#generate-panel [data-slot=bits-receipt]", "the receipt of one number"),
    ),
    **_places(
        "inspect",
        "cost",
        opens=(("kv", True),),
        cache=("#inspect-panel [data-fold=kv]", "what the KV cache saves"),
        cache_proof=("#inspect-panel [data-slot=kv-proof]", "the proof that both texts are the same"),
        cache_times=("#inspect-panel [data-slot=kv-times]", "the times with and without the cache"),
    ),
    **_places(
        "inspect",
        head_place=("#inspect-panel .tokens", "the prompt's tokens"),
        next_token=("#inspect-panel [data-slot=next]", "the next token"),
    ),
    **_places(
        "inspect",
        "steps",
        step_picture=("#inspect-panel [data-slot=step-chart]", "the picture of the step"),
        step_words=("#inspect-panel [data-slot=step-how]", "what is said of the step"),
    ),
    **_places(
        "inspect",
        "steps",
        opens=(("lens", True),),
        lens=("#inspect-panel [data-slot=lens-map]", "the logit lens"),
    ),
    **_places(
        "inspect",
        "heads",
        pattern=("#inspect-panel [data-slot=pattern]", "the head's pattern"),
        pattern_words=(
            "#inspect-panel :is([data-slot=headline], [data-slot=pattern] .chart-words, .strip-head p)",
            "what the page says about the pattern",
        ),
        all_heads=("#inspect-panel [data-slot=grid]", "all heads"),
        switch_off=("#inspect-panel [data-slot=head-buttons]", "the button “Switch it off”"),
        effect=("#inspect-panel [data-slot=next]", "the next token, before and after"),
    ),
    **_places(
        "inspect",
        "heads",
        opens=(("compare", True),),
        other_pattern=("#inspect-panel [data-slot=with-pattern]", "the pattern beside it"),
    ),
    **_places(
        "inspect",
        "heads",
        opens=(("why", True),),
        receipt=("#inspect-panel [data-slot=receipt]", "the receipt"),
        receipt_score=("#inspect-panel .receipt-score", "the score on the receipt"),
    ),
    **_places(
        "inspect",
        "heads",
        opens=(("change", True),),
        change=("#inspect-panel [data-slot=edit-apply]", "what to change"),
        cost=("#inspect-panel [data-slot=edit-cost]", "what it costs"),
    ),
    **_places(
        "inspect",
        "heads",
        opens=(("worth", True),),
        worth=("#inspect-panel [data-slot=worth]", "what each part is worth"),
    ),
    **_places(
        "inspect",
        "training",
        opens=(("training", "moments"),),
        timeline=("#inspect-panel [data-slot=moments-timeline]", "the timeline"),
        moment=("#inspect-panel input[name=moment]", "the slider of moments"),
        pattern_then=("#inspect-panel [data-slot=moments-pattern]", "the pattern at that moment"),
    ),
    **_places(
        "inspect",
        "heads",
        opens=(("roles", True),),
        test_heads=("#inspect-panel [role=radiogroup][aria-label^=Heads]", "what heads are tested for"),
        roles=("#inspect-panel [data-slot=roles-map]", "the map of heads"),
        role=("#inspect-panel [data-slot=role]", "the chosen head's role"),
    ),
    **_places(
        "moe",
        train_both=("#moe-train", "the button “Train both”"),
        verdict=("#moe-verdict", "the verdict"),
        difference=("#moe-difference", "the difference with its interval"),
    ),
    **_places(
        "moe",
        opens=(("routing", True),),
        routes=("#routing-text", "where each token went"),
        followed_token=("#routing-followed", "the token that is followed"),
        loads=("#moe-panel [data-slot=load-over-training]", "the load while the mixture trained"),
    ),
    **_places(
        "moe",
        opens=(("breaking", True),),
        train_unbalanced=("#train-unbalanced", "the button “Train this pair without balance”"),
        balance_terms=("#breaking-pulls", "what each balance term asks of the routers"),
    ),
}
"""By the name that lesson files use."""

TABS = ("train", "generate", "inspect", "moe")
VIEWS = ("steps", "heads", "training", "cost")

_RUN = (
    "source size text steps causal seed dropout learning_rate optimizer n_layers n_heads d_model context_length "
    "eval_every sample_every patience batch_size"
)
SETS = (
    *("tab", "view", "model"),
    *(f"inspect.{name}" for name in ("prompt", "layer", "head", "query", "key", "step")),
    *(f"generate.{name}" for name in ("prompt", "temperature", "new_tokens", "samples")),
    *(f"train.{name}" for name in _RUN.split()),
    *(f"pair.{name}" for name in ("n_experts", "experts_per_token", "d_expert", "seeds", "steps")),
)
"""The controls that `set` may set."""
WATCHED = (
    *(f"generate.{name}" for name in ("prompt", "temperature", "greedy", "new_tokens", "seed", "same_again")),
    *(f"inspect.{name}" for name in ("prompt", "layer", "head", "query", "key", "edits", "moment")),
)
"""The controls that a step may wait for."""

DOINGS = ("run", "pair", "balance", "when", "pressed", "shown", "changed", "control")
"""What `done` may say; see docs/lessons.md."""
