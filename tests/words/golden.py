"""Golden files: every sentence of playground/words with the facts that trigger it.

To write them again: python -m tests.words.golden
"""

import dataclasses
import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace as Facts

import numpy as np

from playground.data import LANGUAGES, Baselines, corpus_from_sentences
from playground.data.judging import LearnedText, Share, judge
from playground.data.tokenizers import CharTokenizer
from playground.game.rules import FLOOR, MODEL
from playground.influence.proof import Trial
from playground.influence.ranking import Passage, Ranked
from playground.influence.verbatim import Copied, Match
from playground.inspection.edits import EditCell, RemoveMask, SwapPattern, SwitchOff
from playground.inspection.precision import InPrecision, PrecisionCost
from playground.inspection.roles import Estimate
from playground.inspection.walk import step, step_names
from playground.interventions.circuit import Circuit, Edge, Node, Place
from playground.interventions.patching import Donor, PatchMap
from playground.interventions.steering import SteeringCurve
from playground.links import RunCard
from playground.model import PRESETS, Transformer
from playground.model.matched_pair import match_dense
from playground.storage import Checkpoint
from playground.storage.spaces import Change, Deployment
from playground.storage.transformers_export import Parity
from playground.studies.finetune import Measured
from playground.studies.one_change import Experiment, Group
from playground.studies.scores import Score
from playground.studies.sweep import Row
from playground.training import RECIPES, Finished, History, Noticed, SettingsChanged
from playground.training import events as kinds
from playground.training import states as state_kinds
from playground.training.states import State
from playground.training.verdict import Verdict
from playground.words import (
    baselines,
    card,
    classroom,
    corpus,
    edits,
    examples,
    game,
    heads,
    influence,
    interventions,
    judging,
    lens,
    links,
    matched_pair,
    precision,
    scores,
    shell,
    slips,
    states,
    sweep,
    training,
    tuning,
    verdict,
    walk,
)
from playground.words.result import Result
from tests.game.test_rules import played
from tests.inspection.test_receipts import look_at
from tests.model.configs import TINY, VARIANTS
from tests.words.golden_pictures import of_experts, of_inspect, of_pictures  # noqa: F401

HERE = Path(__file__).parent
Case = tuple[str, object]
"""Facts in words, and what is said of them."""

KNOWN = Baselines(uniform=4.0, unigram=3.0, bigram=2.0, floor=1.0, ngram=1.5, order=4, unit="character")
ORDINARY = Baselines(uniform=4.0, unigram=3.0, bigram=2.0)
FEW = {"tokens": 119, "chance": {"unigram": 0.24, "uniform": 0.1, "bigram": 0.1}, "unit": "word"}
NEAR = Baselines(uniform=6.0, unigram=5.53, bigram=5.2, **FEW, at_best={"unigram": 5.3, "uniform": 5.9})
LITTLE = Baselines(uniform=2.0, unigram=0.03, bigram=0.01, tokens=99, chance={"unigram": 0.09})


def of_baselines() -> Iterator[Case]:
    for name, of in (("a language", KNOWN), ("few words", NEAR)):
        yield from ((f"the baselines of {name}: {each.name}", each.sentence) for each in baselines.each_baseline(of))
    yield "titles", f"{baselines.title('floor')}\n{baselines.title('bigram')}"
    for name, of, losses in (
        ("a language", KNOWN, (5.5, 3.999, 3.5, 2.5, 1.7, 1.495, 1.04, 0.9, math.nan)),
        ("ordinary text", ORDINARY, (5.0,)),
        ("few words", NEAR, (6.5, 5.85, 5.26)),
        ("little to predict", LITTLE, (0.0036,)),
    ):
        for loss in losses:
            yield f"how good is loss {loss:g} on {name}", baselines.how_good(of, loss)
    for loss in (5.5, 3.999, 2.5, 1.7, 1.495, 1.04):
        yield f"loss {loss:g} as it learns, on a language", baselines.passed_headline(KNOWN, loss, "So far")
    yield "still falling at loss 1.7", baselines.passed_headline(KNOWN, 1.7, "Still falling")
    yield "levelled off at loss 3.999", baselines.passed_headline(KNOWN, 3.999, "Levelled off")
    yield "sums with slips", baselines.slips_of("character", "sum")


def of_states() -> Iterator[Case]:
    facts = {"now": 1.3, "lowest": (350, 0.99), "training": (0.95, 0.3), "left": 0.4, "fell": 0.1}
    for kind in state_kinds.LEARNING, state_kinds.LEVEL, state_kinds.OVERFITTING, state_kinds.BELOW:
        for over in (False, True):
            facts["left"] = -0.05 if kind == state_kinds.BELOW else 0.4
            yield f"{kind}, {'over' if over else 'training'}", states.result(State(kind, 350, **facts, over=over))
    for loss in 1.3, 0.1:
        yield (
            f"by heart, loss {loss}",
            states.result(State(state_kinds.BY_HEART, **{**facts, "now": loss, "left": None})),
        )
    early = State(state_kinds.OVERFITTING, 0, **facts | {"training": (1.4, 1.3)}, over=True)
    yield "overfitting from the start", f"{states.overfits(early)} {states.result(early)}"
    for loss in 0.1, 1.3:
        overfitted = State(state_kinds.OVERFITTING, 350, **facts | {"training": (1.4, loss)}, over=True)
        yield f"overfitting, training loss {loss}", f"{states.overfits(overfitted)} {states.result(overfitted)}"
    best = {**facts, "now": 0.902, "lowest": (400, 0.902), "left": 0.002}
    yield "levelled off at the best possible", states.result(State(state_kinds.LEVEL, 200, **best, over=True))
    yield "levelled off at zero", states.result(State(state_kinds.LEVEL, 200, **{**best, "now": 0.001, "left": None}))
    yield "diverged, a large jump", states.result(State(state_kinds.DIVERGED, 0, peak=(9, 2102.2)))
    yield "diverged, not a number", states.result(State(state_kinds.DIVERGED, 50, now=math.nan, lowest=(50, 2.0)))
    yield "no mask", states.result(State(state_kinds.UNMASKED))
    facts |= {"training": (0.3, 0.95), "fell": -0.1, "left": 0.4}
    for why in ("UNMEASURED", "FEW", "CUT", "BOTH_ROSE", "MIXED"):
        for over in (False, True):
            state = State(state_kinds.UNCLEAR, 350, **facts, over=over, why=getattr(state_kinds, why))
            yield f"unclear: {state.why}, {'over' if over else 'training'}", states.result(state)


def of_verdict_and_pairs() -> Iterator[Case]:
    for name, found in (
        ("one pair, a tie", Verdict(-0.0003, 0.0005, 1)),
        ("one pair, MoE ahead", Verdict(-0.3, 0.01, 1)),
        ("one window", Verdict(-0.1, math.inf, 1)),
        ("three pairs, MoE better", Verdict(-0.031, 0.0025, 3, 0.001)),
        ("three pairs, dense better", Verdict(0.031, 0.0025, 3, 0.001)),
        ("three pairs, a tie", Verdict(0.001, 0.05, 3, 0.02)),
        ("three pairs, no spread", Verdict(-0.01, 0.0, 3, 0.0)),
    ):
        yield name, verdict.verdict_result(found, 80)
        yield f"{name}, more to come", verdict.verdict_result(found, 40, active=True).headline
    for loss, margin in ((0.5, 0.2), (0.1, math.inf), (0.01, 0.03)):
        yield f"loss {loss:g}, margin {margin:g}", verdict.loss_in_words(loss, margin)
    for name, shared in (("no shared expert", False), ("a shared expert", True)):
        pair = match_dense(TINY.replace(n_experts=4, d_expert=20, shared_expert=shared))
        yield name, matched_pair.matched_in_words(pair)
        yield f"{name}: cost", matched_pair.cost_headline(pair.dense, pair.moe)
    yield "all experts: cost", matched_pair.cost_headline(pair.dense, pair.moe.replace(experts_per_token=4))


def of_heads_and_precision() -> Iterator[Case]:
    tokens = list("abcdef")
    one = lambda value: Estimate(np.full((1, 1), value), np.full((1, 1), 0.05))  # noqa: E731
    yield from ((f"role: {role}", f"It {words}.") for role, words in heads.ROLE_NAMES.items())
    yield "an effect and noise", ", ".join(heads.effect_or_noise(one(x), (0, 0)) for x in (0.357, -0.03))
    yield "below all heads", heads.NUMBERS
    yield "when a head has a role", heads.CRITERIA
    yield "a role in a table", heads.role_words("content")
    yield "roles of three heads", heads.roles_counted(Facts(roles=[["first", "even"], ["first"]]))
    yield "no roles", heads.roles_counted(Facts(roles=[["unclear"] * 4]))
    yield "weight 0.9 on one token", heads.attends_headline(3, 2, list("a kite"), np.array([0, 0, 0, 0.9, 0.1, 0]))
    yield "weight 0.3 at most", heads.attends_headline(3, 2, list("ab"), np.array([0.3, 0.3]))
    for before, after in ((0.9998, 0.15), (0.1, 0.5), (0.2, 0.2)):
        yield f"without a head: {before} to {after}", heads.without_words("k", before, after)
        yield f"next token: {before} to {after}", heads.next_words(after, before)
    yield "without a head, after an earlier token", heads.without_words("k", 0.1, 0.5, "24 “␣”")
    yield "a head that is off", heads.edited_headline([SwitchOff(3, "head", 2)], {"b": 0.39, "k": 0.15})
    yield "other edits", heads.edited_headline([SwitchOff(3, "layer")], {"b": 0.39})
    yield "before it was off", heads.unedited_words("k", 0.9998, "24 “␣”")
    yield "a cell of a pattern", heads.cell_words(tokens, 4, 1, 0.25)
    for dot in (1.7, -0.3):
        cell = Facts(query=0, key=1, weight=0.25, products=np.array([2.0, -0.1, dot - 1.9]), visible=True)
        yield f"products that sum to {dot}", heads.weight_words(cell, "ab")
    yield "a masked weight", heads.weight_words(Facts(query=0, key=1, visible=False), "ab")
    plain = InPrecision("fp32", 4_000_000, 1000.0, 1.0, 0.1, 0.0, 0.0, None)
    way = InPrecision("int8", 1_000_000, 3000.0, 1.3, 0.1, 0.3, 0.1, None)
    close = dataclasses.replace(way, more=0.00003, more_margin=0.000034, tokens_per_second=1000.0)
    for name, other in (
        ("worse", way),
        ("better", dataclasses.replace(way, more=-0.3)),
        ("too close", close),
        ("one window", dataclasses.replace(close, more_margin=math.inf)),
    ):
        cost = PrecisionCost((plain, other), 100, 5, None, ())
        yield name, precision.precision_summary(cost)
        yield f"{name}, in the table", precision.above_fp32(other)
    yield "levels", precision.describe_level_counts("up", (4, 8), 31)


def of_training() -> Iterator[Case]:
    for reason in ("done", "stopped", "time", "risen"):
        yield f"ended: {reason}", training.message(Finished(9, 1.0, reason=reason, steps=1000, val_loss=1.0))
    yield "ended early", training.ended_early(28, 39, 5)
    yield "ended after one step", training.message(Finished(1, 1.0, reason="done", steps=1, val_loss=1.0))
    ended = {"reason": "diverged", "step": 9, "steps": 12, "weights_step": 8}
    yield "ended: diverged, weights restored", training.ended(ended)
    yield "ended, as older versions kept it", training.ended({"message": "All 5 steps are done."})
    machines = {"before": "fp32 on cpu, threads: 1", "now": "fp32 on cpu, threads: 2"}
    wrong = {"device": "mps", "precision": "float32", "part": "dropout", "off": 0.5}
    for name, kind, facts in (
        ("a device that computes wrongly", kinds.DEVICE_FAULT, wrong),
        ("a device that fails", kinds.DEVICE_FAULT, {"device": "cuda:0", "precision": "bf16", "error": "no kernel"}),
        ("not compiled", kinds.NOT_COMPILED, {"error": "no compiler"}),
        ("no GPU", kinds.NO_GPU, {}),
        ("not saved", kinds.NOT_SAVED, {"error": "disk full"}),
        ("another machine", kinds.OTHER_MACHINE, {**machines, "settings": {"precision": ("auto", "bf16")}}),
    ):
        yield name, training.message(Noticed(5, 1.0, kind, facts))
    settings = {"steps": (8, 1200), "max_seconds": (None, 3.0)}
    yield "settings changed", training.message(SettingsChanged(8, 1.0, settings))


def of_links() -> Iterator[Case]:
    machine, other = "cpu, torch 2.13.0, Some CPU", "Some GPU, torch 2.13"
    losses = ((0, 3.4, 3.5), (300, 1.2, 1.2345))
    steps, same = {"step": [0, 300]}, {"val_loss": [3.5, 1.2345]}
    for name, theirs in (("unknown machine", ""), ("same machine", machine), ("another machine", other)):
        card = RunCard("stories", PRESETS["small"], RECIPES["small"], losses=losses, machine=theirs)
        yield f"differs, {name}", links.repetition_in_words(card, steps | {"val_loss": [3.6, 1.2395]}, machine)[1]
        yield f"matched, {name}", links.repetition_in_words(card, steps | same, machine)[1]
    yield "matched so far", links.repetition_in_words(card, {"step": [0], "val_loss": [3.5]}, machine)[1]
    yield "nothing compared", links.repetition_in_words(card, {"step": [], "val_loss": []}, machine)[1]


def of_texts() -> Iterator[Case]:
    for name, language, text, begun in (
        ("a wrong sum", "addition", "1+2=3\n4+4=9\n5+5=1", "\n"),
        ("nothing whole", "addition", "1+", "\n"),
        ("other letters", "addition", "46\n1+1=2\n", "x12+34="),
        ("a wrong prompt", "addition", "46\n1+1=2\n", "12++34="),
        ("a wrong prompt with nothing after it", "stories", "a", "Mia was s"),
        ("a wrong pronoun", "stories", "Mia lived by the sea. He had a red kite.\n", "\n"),
        ("a word that is none", "stories", "Mia livd by the sea. She had a red kite.\n", "\n"),
        ("a missing space", "stories", "She had a red kite.\n", "Mia lived by the sea."),
        ("a second space", "stories", " red kite.\n", "Mia lived by the sea. She had a "),
        ("a wrong line break", "addition", "1+\n2=3\n", "\n"),
        ("a mistake at the end", "addition", "1+2=3\n4+4=9", "\n"),
    ):
        yield name, judging.parsed_summary(judge(LANGUAGES[language], text, begun))
    rule = "the old keeper sees the small lamp by the sea and "
    learned = LearnedText(rule * 20)
    half = learned.compare(rule + "x" * len(rule))
    yield "half copied", judging.compared_summary(half)
    yield "one word", judging.compared_summary(learned.compare("yes "))
    yield "words of its own", judging.compared_summary(learned.compare("no xyz and no zyx "))
    yield "no whole word", judging.compared_summary(learned.compare("ab"))
    sentences = corpus_from_sentences().learned()
    wrong = " sees the dog. the rug sees the rug. the rug sees the rug. the"
    for text in (" sees the dog. the", " likes the rug. the", wrong, wrong.replace("sees the dog", "sees the rug")):
        yield f"sentences: “the cat{text}”", judging.copied_summary(sentences.compare(text, begun="the cat"))
    yield "the legends", f"{judging.FIRST_MISTAKES.format(unit='story')} {judging.LACKING}"
    for share in (Share(6, 13), Share(13, 13), Share(0, 13), Share(1, 2000)):
        yield f"{share.right} of {share.of}", judging.share_text(share)
        yield f"headline: {share.right} of {share.of}", judging.judged_headline(share, LANGUAGES["addition"])
    low = judging.judged_headline(Share(36, 64), LANGUAGES["stories"], nearly_best=True)
    yield "headline: nearly the best loss, many faults", low
    yield "much repeats", corpus.overlap_warning(0.8)
    yield "nearly all repeats", corpus.overlap_warning(0.97)
    yield "much unknown", scores.score_result(_score(1.0, unknown=1200), "stories", "sea.txt")
    yield "the first is better", scores.comparison_result(_score(1.0), _score(2.0, unknown=1), ("a", "b"))
    yield "a tie", scores.comparison_result(_score(1.0), _score(1.01, 0.3), ("a", "b"))


def _score(loss: float, spread: float = 0.1, unknown: int = 0) -> Score:
    return Score([50 * loss_ for loss_ in (loss - spread, loss, loss + spread, loss)], [50] * 4, [60] * 4, unknown)


def of_studies() -> Iterator[Case]:
    def taken(new: float, old: float | None) -> Measured:
        return Measured(_score(new), None if old is None else _score(old), ("the sea\nsang",))

    for facts, before, after in (
        ("learned and forgot", (3.0, 1.0), (2.0, 1.5)),
        ("learned, forgot nothing", (3.0, 1.0), (2.0, 1.0)),
        ("learned both", (3.0, 1.0), (2.0, 0.5)),
        ("the new text as before", (3.0, 1.0), (3.0, 2.0)),
        ("only the old better", (3.0, 1.0), (3.0, 0.5)),
        ("worse", (3.0, 1.0), (4.0, 2.0)),
    ):
        yield facts, tuning.tuning_result(taken(*before), taken(*after))
    known = Baselines(3.7, 3.0, 1.9, ngram=1.2, order=5)
    for after in (1.1, 1.5, 3.2):
        yield f"beside baselines, {after}", tuning.tuning_result(taken(3.0, 1.0), taken(2.0, after), known)
    yield "without its old text", tuning.tuning_result(taken(3.0, None), taken(1.8, None))
    strange = dataclasses.replace(taken(2.0, 1.5), samples=("\N{REPLACEMENT CHARACTER}ing",))
    yield "letters that the tokens lack", tuning.tuning_result(taken(3.0, 1.0), strange)
    noted = {when: dataclasses.asdict(taken(3.0, None)) for when in ("before", "after")}
    yield "in the shell", "\n".join(tuning.tuning_lines(noted))
    for parts, kind in (["é"], "char"), (list("éΩ\n"), "char"), (["sea", "sang", "the", "king", "now"], "word"):
        yield f"the length needed, {kind} {len(parts)}", tuning.needed_words("Run 1", 1300, kind)
        yield f"{len(parts)} lacking", tuning.lacking_words("Run 1", parts, kind)
    slow, fast, broken = Row(0.001, (2.0, 2.1, 1.9)), Row(0.01, (1.0, 1.1, 0.95)), Row(1.0, (math.nan,) * 3)
    near = Row(0.02, (1.05, 1.0, 0.99))
    for facts, rows in (
        ("nothing yet", []), ("one value", [slow]), ("all diverged", [broken]), ("a best one", [slow, fast, broken]),
        ("one of two", [slow, Row(0.01, (1.0,))]), ("the others diverged", [slow, broken]),
        ("luck", [slow, fast, near]), ("one seed", [Row(1, (2.0,)), Row(2, (1.0,))]),
    ):  # fmt: skip
        yield facts, sweep.sweep_result(rows, "Learning rate")
    yield "in the shell", "\n".join(sweep.sweep_lines([slow, fast, broken], "learning_rate"))


def of_edits_and_patches() -> Iterator[Case]:
    for part, index in (("residual", None), ("head", 0), ("expert", 3), ("mlp", None)):
        yield f"a kept patch: {part}", interventions.kept_words(Facts(part=part, layer=1, index=index, place=1), "ab")
    for facts, effects, here, other in (
        ("tokens alike", [[-3.19, -3.2], [0.1, 0.4]], 2.0, -1.5),
        ("layers alike", [[-3.2, 0.1], [-3.1, 0.4]], 2.0, -1.5),
        ("away from the other", [[2.0]], 2.0, -1.5),
        ("nothing", [[0.0]], 2.0, 2.0),
        ("little", [[-0.07]], 2.0, -1.5),
        ("prompts alike", [[-0.6]], 0.63, 0.16),
    ):
        found = PatchMap("mlp", ((0, None), (1, None)), np.array(effects), here, other)
        yield f"a map: {facts}", interventions.patched_result(found, ["a", "b"], ("x", "y"))
    for donor, name in interventions.DONOR_NAMES.items():
        yield f"in its place: {name}", interventions.assumed_words(donor, direct=donor is Donor.ZERO)
    words = {"x": "xylo", "y": "yes", "z": "zoo", "b": "␣"}
    for leaders, chosen in {
        "yxxx": 1,
        "yyyx": 1,
        "ybbb": 1,
        "yyxx": 2,
        "yxxz": 2,
        "xxxx": 1,
        "yyyy": 1,
        "yzzz": 1,
    }.items():
        curve = SteeringCurve((0.0, 0.2, 0.4, 0.6), (-5.0, 1.0, 2.0, 3.0), (1.2, 1.19, 1.6, 1.7), tuple(leaders))
        yield f"steering: {leaders} lead", interventions.steered_result(curve, ("x", "y"), words, chosen)
    for sides in (("Ben", "Ana"), ("", "Ana")):
        yield f"steering adds {sides}", interventions.example_words("Ana came.", sides)
    for after in (("y", 0.9), ("z", 0.61)):
        yield f"patched: {after}", interventions.expected_words(("y", 0.9998), after, ("y", "x"))
    fed, mlp, first, second = Node(0, 0), Node(0), Node(1, 1), Node(1)
    edges = Edge(fed, first, 0.1), Edge(mlp, first, 0.2), Edge(first, second, 0.6), Edge(second, None, 0.9)
    several = Circuit({fed: 0.01, mlp: 0.3, first: 0.5, second: 0.9}, edges, 0.93, (0.7, 1.2, 0.9, 0.8, 0.6), 6)
    place = Place(1, "induction", 0.61)
    yield "a circuit", interventions.circuit_result(several, {first: place}, "axba", "x", "y")
    yield "below a circuit", interventions.boxes_words("faeb ca")
    for changed in (1, 4):
        yield f"the prompts of a circuit, {changed} of 6 changed", interventions.circuit_prompts(changed, 6)
    for lost, fresh in (({first: 0.9}, (0.54,)), ({first: 0.9}, (0.11, *[0.95] * 4)), ({first: 0.9}, ()), ({}, ())):
        few, places = Circuit(lost, (), 0.93, fresh, 6), {node: Place(2, None, 0.2) for node in lost}
        said = interventions.circuit_result(few, places, "a xa", "x", "y")
        yield f"a circuit: {len(lost)} of its parts, fresh pairs keep {fresh}", said
    for edit in (SwitchOff(1, "head", 2), SwitchOff(0, "layer"), SwitchOff(0, "attention"), EditCell(1, 0, 5, 2, 0.9),
                 SwapPattern(1, 1, "previous"), SwapPattern(1, 1, "uniform"), RemoveMask(), RemoveMask(1)):  # fmt: skip
        yield repr(edit), edits.edit_words(edit)
    yield "where edits are seen", edits.SEEN


def of_lens_and_lessons() -> Iterator[Case]:
    yield "stages of the lens", "; ".join(lens.stage_names(2))
    yield "the lens of a pre-norm model", lens.lens_caveat(TINY)
    yield "the lens of a post-norm model", lens.lens_caveat(VARIANTS["post-norm"])
    yield from ((f"the example {name}", note) for name, note in examples.EXAMPLE_NOTES.items())
    for name, (says, truth) in slips.SLIPS.items():
        numbers = re.sub(r"\{\w+(?::[^}]*)?\}", "#", truth)  # they are those of shipped models
        yield name, f"One textbook {says}. {numbers}"


def of_influence() -> Iterator[Case]:
    match = Match(0, 40, 2, (10, 90))
    yield "known by heart", influence.copied_result(Copied((match,), 0.62, 0.35), match)
    yield "all of it known by heart", influence.copied_result(Copied((match,), 1.0, 0.0), match)
    for name, found in (
        ("as much copied as held-out text", Copied((match,), 0.62, 0.6)),
        ("copied, no held-out text", Copied((match,), 0.62, None)),
        ("nothing copied", Copied((), 0.0, 0.0)),
        ("all of it copied", Copied((match,), 1.0, 0.0)),
    ):
        yield name, influence.copied_sentence(found)
    one = (Passage(((0, 9),), 1.0),)
    ranked = Ranked(one, (), 300, 1200, 8, -1.0, (("who owns what", 0.45), ("free choices", 0.4)))
    for name, count, of in (
        ("a passage for rare words", 1, ranked),
        ("a passage for frequent words", 1200, ranked),
        ("no passage", 0, dataclasses.replace(ranked, raising=())),
        ("no search yet", 3, None),
    ):
        yield name, influence.passage_result("the fox", count, of)
    yield "how far to trust a passage", influence.ranking_details(ranked)
    whole = dataclasses.replace(ranked, measured=1200, moments=1)
    yield "all passages, the last weights", influence.ranking_details(whole)
    yield "a strength", influence.strength(0.4, 1.0)
    yield "the passages of words that occur often", influence.LITTLE
    yield "the other side", f"{influence.LOWERING} {influence.strength(-0.134, 1.0)}"
    sure, unsure = Trial(0, -3.5, -0.2), Trial(1, -0.4, -0.6)
    yield "one seed", influence.proof_result([sure], -0.1, [1], 1, "the fox")
    never = dataclasses.replace(sure, without=-16.0)
    same = dataclasses.replace(sure, without=-0.05, control=-0.03)
    yield "one seed, hardly an effect", influence.proof_result([same], -0.03, [2], 1, "the fox")
    yield "one seed, two copies", influence.proof_result([sure], -0.1, [1], 2, "the fox")
    yield "three seeds that differ", influence.proof_result([sure, unsure, sure], -0.1, [1, 2, 5], 7, "the fox")
    hardly = dataclasses.replace(never, without=-13.0)
    yield "three seeds, next to impossible", influence.proof_result([never, never, hardly], -0.1, [1], 1, "the fox")
    alike = dataclasses.replace(sure, seed=1, control=-0.3)
    yield "two seeds", influence.proof_result([sure, alike], -0.1, [2, 3], 2, "the fox")
    yield "three seeds that agree", influence.proof_result([sure, alike, alike], -0.1, [2, 3], 2, "the fox")
    yield (
        "the table of proofs",
        "\n".join(map(" | ".join, (influence.PROOFS, influence.proof_row([1, 3], 1.0, [sure])))),
    )
    yield (
        "a score, and too few proofs for one",
        f"{influence.score_sentence(5, 0.7)} {influence.score_sentence(3, 1.0)}",
    )


def checkpoint(**about: object) -> Checkpoint:
    history = History()
    history.evaluations = {"step": [0, 10], "train_loss": [2.0, 1.0], "val_loss": [2.1, 1.1], "seconds": [0.0, 1.0]}
    history.samples = [{"step": 10, "prompt": "ab", "text": "cd```"}]
    return Checkpoint(Transformer(TINY), CharTokenizer("abcdefghij"), history, "My model", about)


def of_card_and_shell() -> Iterator[Case]:
    known = {"uniform": 2.4, "unigram": 2.0, "bigram": 1.5, "floor": 1.0}
    trained = checkpoint(corpus="letters", ladder=known)
    yield "a trained model", card.model_card(trained, repo_id="ada/model", picture="curve.png")
    diverged = checkpoint()
    diverged.history.evaluations["val_loss"][-1] = math.nan
    yield "a diverged model", card.model_card(diverged)
    imported = dataclasses.replace(checkpoint(imported_from="gpt2"), history=History())
    yield "an imported model", card.model_card(imported)
    exported = card.exported_card(trained, Parity("5.1", 1e-5, True, 100, 20, 0))
    yield "exported", exported.split("## Does it")[1]
    yield "exported, not the same", card.parity_in_words(Parity(None, 1e-5, False, 100, 20, 3))
    new = Deployment("ada/page", "cpu-basic", None, True, (Change("app.py", "add", 900),), {})
    paid = Deployment("ada/page", "t4-small", 900, False, (), {})
    yield "a new Space", "\n".join(shell.deployment_lines(new))
    yield "an unchanged Space on paid hardware", "\n".join(shell.deployment_lines(paid))
    mine = checkpoint(ladder=known, language="addition")
    mine.history.judged = [{"step": 10, "right": 6, "of": 13, "left": []}]
    state = state_kinds.state_of(mine.history, baselines=Baselines.from_dict(known))
    yield "info", "\n".join(shell.checkpoint_lines(mine, state))
    yield "the best step", "\n".join(shell.best_lines(Facts(best=(5, 1.05))))


def of_classroom() -> Iterator[Case]:
    for changes, said in classroom.CHANGING.items():
        yield f"each student changes: {changes or 'nothing'}", said
    for why, said in classroom.GONE.items():
        yield f"no class: {why}", said
    yield "the class has ended", classroom.ENDED
    yield "what the teacher sees", classroom.SEEN
    yield "a class without students", classroom.NO_STUDENTS
    yield "an address that only this machine can open", classroom.LOCAL
    yield "a student's last loss", classroom.latest_words(1.5, 800, 1000, 0.25)
    yield "two texts", classroom.COMPARING
    yield "its chart", classroom.class_words([1.0, 2.0, 1.5], 0.9)
    yield "one run, others left out", classroom.class_words([1.0], None, left_out=1)
    yield "two left out", classroom.class_words([1.0, 2.0], None, left_out=2)
    yield "nothing measured yet", classroom.class_words([], None)
    own, one = Group("Small", (2.0, 2.1, 2.3), ("A", "B", "C"), own=True), Group("Tiny", (2.0,), ("D",))
    lower, near = Group("Medium", (1.5, 1.6, 1.8), ("E", "F", "G")), Group("Wide", (2.0, 2.2, 2.3), ("H", "I", "J"))
    yield "no complete run", classroom.experiment_words(Experiment("size", (), False, 0))
    yield "one run", classroom.experiment_words(Experiment("seed", (one,), False, 0))
    yield "runs that are left out", classroom.experiment_words(Experiment("seed", (own,), False, 3))
    yield "sizes, one clearly lower", classroom.experiment_words(Experiment("size", (own, lower, near), False, 1))
    two = Group("Dialogue", (0.5, 0.6), ("K", "L"))
    yield "texts, too few runs of one", classroom.experiment_words(Experiment("text", (own, two, lower), True, 0))


def of_game() -> Iterator[Case]:
    bigram = [1.5] * 10
    near, better, worse = [*bigram[1:], 1.4], [*bigram[:4], 0.5, *bigram[5:]], [*bigram[:7], 3.0, *bigram[8:]]
    for name, you, model in (("all level", bigram, bigram), ("one point", near, bigram), ("you lead", better, worse),
                             ("the model leads", worse, better), ("both lead", better, better)):  # fmt: skip
        over = played(you, model)
        yield f"a game: {name}", f"{game.result(over, 'word {}'.format)}\n{game.luck(over)}"
        for each in over.rounds:
            each.bets[FLOOR] = each.bets[MODEL]
        yield f"{name}, the model is the best possible player", game.luck(over)


def of_walk() -> Iterator[Case]:
    cases = [(name, 1, None) for name in VARIANTS] + [("learned", 0, None), ("learned", 0, [3]), ("post-norm", 1, [3])]
    for name, layer, ids in cases:
        seen = look_at(VARIANTS[name], ids) if ids else look_at(VARIANTS[name])
        for at in step_names(seen, layer):
            told = walk.describe(step(seen, at, layer, 1, *((0, 0) if ids else (4, 2))))
            yield f"{at}: {told.title}", told.why
            yield f"{at}, its formula", told.formula
            yield at, told.sentence
    alone = look_at(TINY.replace(n_heads=1, positions="none", causal=False))
    for at in ("embed", "split"):
        told = walk.describe(step(alone, at, 1, 0, 4, 2))
        yield f"{at}, one head, no mask, no positions", f"{told.why} {told.sentence}"


FILES = {name.removeprefix("of_"): made for name, made in [*globals().items()] if name.startswith("of_")}


@cache
def written(name: str) -> str:
    """One file: each text once, after the facts that trigger it; a result in three lines."""
    texts: dict[str, str] = {}
    for facts, said in FILES[name]():
        if isinstance(said, Result):
            said = "\n".join(filter(None, (said.headline, said.number, said.details)))
        if name == "walk":  # the numbers are those of random weights
            said = re.sub(r"−?\d+\.\d+|−?\d+(?=°|\s%)", "#", said)
        said = said.strip("\n")
        if said not in texts:
            texts[said] = facts
    blocks = [f"{facts}\n" + "".join(f"  {line}\n" for line in said.split("\n")) for said, facts in texts.items()]
    return "\n".join(blocks)


if __name__ == "__main__":
    for each in FILES:
        (HERE / f"{each}.txt").write_text(written(each), encoding="utf-8")
