"""Limits: every bound on what a visitor may ask for, in one place; one set each for a local start, a class and a Space.

Requests are checked here in Python, and how much runs at once in board.py and models.py, whatever the page's sliders
allow. A raw API call meets the same error messages.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..devices import processors

if TYPE_CHECKING:
    from ..model import ModelConfig
    from ..training import TrainConfig


SNAPSHOTS = 40
"""Most moments kept of a run, if there is room."""
AWAY_SECONDS = 50.0
"""How long a place is kept for a page without a sign of life; an open page gives one every 20 seconds (page.js)."""
RETURN_SECONDS = 600.0
"""How long a place in the queue is kept after a restart, for a page to come back."""
RETRY_SECONDS = 10.0
"""Seconds between retries of failed writes to the disk."""
USED_SECONDS = 600.0
"""Seconds between notes of when a model was last used."""
INDEX_BYTES = 500_000_000
"""Most bytes of the data folder's index, including classes: beyond it nothing more is accepted."""
FAILED_RUNS = 16
"""Most failed runs, of all visitors, that are still remembered to say why."""
PAGES = 500
"""Open pages whose last answer and request are remembered; a forgotten page starts afresh."""
QUEUED_EVENTS = 500
"""Programs' calls that may wait for their answer."""
STEP_PARAMETERS = 8_000_000
"""Most parameters of a model whose training step is shown: a larger one takes too long to copy and train each time."""
REPLAY_NUMBERS = 250_000_000
"""Most parameters read for one look through training, all moments together."""
HEADS_AT_ONCE_FLOPS = 1e11
"""Up to this many operations, a prompt is read without each head in turn before drawing: some tenths of a second."""
HEAD_TESTS_FLOPS = 1e12
"""Up to this many operations, every head of a model is tested: some ten seconds."""
EDITS = 24
"""Most changes to a model in force at once."""
PATCHES = 12
"""Most patches kept at once."""
WRITERS = 64
"""Texts written at the same time for all visitors; those of one model share its passes."""
TEXTS_AT_ONCE = 4
"""Texts written at the same time for one visitor, in as many windows."""
THREADS = 96
"""Handlers that run at the same time, more than writers: a writer needs a thread only between two updates."""
PRECISION_TOKENS = 2048
"""Predictions on which a model is scored in each precision."""
PRECISION_WRITTEN = 64
"""Tokens that it writes in each precision."""
GAMES = 500
"""Remembered games of bets on the next token, each of one visitor with one model; forgotten ones begin anew."""
TYPED = 60
"""Most characters of a typed token."""
LESSON_RUNS = 24
"""Most runs that a browser remembers as older than a lesson."""
LESSON_WORDS = 1200
"""Most characters of a lesson's sentence that a browser keeps."""
BODY_SPARE = 1_000_000
"""Bytes of a request besides its text: the form's other values."""
BODY_TEXT = 10_000_000
"""Most bytes of a text within a request, which is copied in memory several times. A file may have more."""
JSON_ESCAPES = 3
"""Bytes of JSON for each byte of a text, at most: “é” has two in UTF-8 and six as \\u00e9."""
BODIES, BODIES_PER_ADDRESS = 256_000_000, 64_000_000
"""Most bytes of all requests that are being read and answered, and of those from one address."""
SMALL_BODY = 65_536
"""A request of at most this many bytes always finds room: what a click sends."""
BODY_SECONDS = 300.0
"""Most seconds that a request may take to arrive."""
MULTIPART_SPARE = 65_536
"""Bytes of an upload besides its file."""


# ---- classes ---------------------------------------------------------------------------------------------------------

CLASSES, CLASSES_PER_ADDRESS = 1000, 40
"""Most classes on a server at once, and from one address, including ended ones that can still be read."""
CLASS_DAYS = 31
"""Most days that a class may last."""
CLASS_ALONE_DAYS = 1
"""Days after which a class that nobody has joined is deleted."""
CLASS_KEPT_DAYS = 7
"""Days after its end for which a teacher can still read a class; then it is deleted."""
CLASS_TEXT = 200_000
"""Most characters of a text that a class carries."""
CLASS_TITLE, STUDENT_NAME, MODEL_SENTENCE, ANSWER = 80, 40, 160, 300
"""Most characters of a class's title, a student's name, a student's sample, and an answer."""
STUDENTS = 200
"""Most students in one class."""
CLASS_RUNS = 12
"""Runs of one student that a class remembers; the oldest leaves first."""
CLASS_ANSWERS = 400
"""Answers of one student that a class remembers."""
CURVE_POINTS = 80
"""Points of a run's curve that a class remembers."""
WRONG_CODES, WRONG_SECONDS = 60, 600.0
"""How many codes and teacher's links one address may get wrong, within how many seconds."""


class LimitError(ValueError):
    """A request beyond a limit; the sentence names the limit and a way round it."""


@dataclass(frozen=True)
class Limits:
    """The limits on one kind of server. `where` completes "… at most 3,000,000 parameters …"."""

    kind: str
    """One of KINDS."""
    where: str
    """This place's name in sentences."""
    parameters: int
    """Most parameters of a model to be trained or loaded."""
    context: int
    """Most tokens in a model's context."""
    vocabulary: int
    """Most different tokens."""
    layers: int
    """Most blocks in a stack."""
    batch: int
    """Most windows per forward pass, times accumulation."""
    steps: int
    """Most optimizer steps in a run, including resumed parts."""
    seconds: float
    """Most wall-clock seconds of a run between two presses of a button."""
    eval_windows: int
    """Most windows for measuring a training or validation loss: a measurement cannot be stopped in the middle."""
    memory: int
    """Most bytes that a training step may need, as `training_memory` estimates them."""
    text_bytes: int
    """Most bytes of a text to learn from, as UTF-8."""
    prompt: int
    """Most characters of a prompt."""
    new_tokens: int
    """Most tokens generated at one press of a button."""
    samples: int
    """Most continuations generated at once."""
    jobs_per_address: int
    """Most runs from one address at the same time; more wait in the queue. A class may come from one address."""
    jobs: int
    """Most runs of all visitors at the same time; more wait in the queue."""
    waiting: int
    """Most runs of all visitors that wait for a place; half as many of one address's programs."""
    seeds: int
    """Most pairs of models trained in one comparison."""
    models_per_visitor: int
    """Most models kept for one visitor; the least recently used leaves first."""
    models: int
    """Most models kept for all visitors."""
    model_bytes: int
    """Most bytes of weights in memory at once, over all visitors' models."""
    disk_bytes: int
    """Most bytes of all visitors' model files together."""
    keep_days: float | None
    """Days for which an unused model is kept; None for ever."""
    snapshot_bytes: int
    """Most bytes of the kept moments of one run."""
    upload_bytes: int
    """Most bytes of all visitors' uploads, under way or stored; a file is deleted an hour or two after it came."""
    upload_bytes_per_address: int
    """Most bytes of uploads from one address, such as a school's."""

    @property
    def archive_bytes(self) -> int:
        """Most bytes of an uploaded model's zip, and of its contents: the largest model's weights and its texts."""
        return 4 * self.parameters + 10_000_000

    @property
    def file_bytes(self) -> int:
        """Most bytes of an uploaded text or zip; slightly more than their own limits, which then cause the error."""
        return max(self.text_bytes, self.archive_bytes) + 1024

    # ---- checks: each returns nothing or raises LimitError -----------------------------------------------------------

    def check_text(self, text: str) -> None:
        """Check a text to learn from."""
        # the cheap test first: a character takes at least one byte
        self.check_size(len(text) if len(text) > self.text_bytes else len(text.encode("utf-8", errors="surrogatepass")))

    def check_size(self, size: int) -> None:
        """Raise LimitError if a text of `size` bytes is too long."""
        if size > self.text_bytes:
            raise LimitError(
                f"The text has {size / 1e6:.1f} MB; {self.where} takes at most {self.text_bytes / 1e6:.1f} MB. "
                "Use a part of it."
            )

    def check_body(self, size: int) -> None:
        """Raise LimitError if a request's JSON has too many bytes."""
        most = min(self.text_bytes, BODY_TEXT)
        if size > JSON_ESCAPES * most + BODY_SPARE:
            remedy = "Upload it as a file, or use a part of it." if most < self.text_bytes else "Use a part of it."
            raise LimitError(
                f"This is more than {self.where} reads at once: a text may have at most {most / 1e6:.1f} MB. {remedy}"
            )

    def check_upload(self, size: int) -> None:
        """Check a request of this many bytes that contains a file."""
        if size > self.file_bytes + MULTIPART_SPARE:
            raise LimitError(
                f"The file is too large: {self.where} takes texts of at most {self.text_bytes / 1e6:.1f} MB and models "
                f"of at most {self.archive_bytes / 1e6:.1f} MB. Use a part of the text, or a smaller model."
            )

    def check_prompt(self, prompt: str) -> None:
        """Check a prompt to continue."""
        if len(prompt) > self.prompt:
            asked, most = f"{len(prompt):,}", f"{self.prompt:,}"
            raise LimitError(f"The prompt has {asked} characters; {self.where} takes at most {most}. Shorten it.")

    def check_generation(self, new_tokens: int, samples: int = 1) -> None:
        """Raise LimitError if these are too many new tokens or samples."""
        self._at_most("new tokens at once", new_tokens, self.new_tokens, "Ask for fewer and continue from there.")
        self._at_most("samples at once", samples, self.samples, "Ask for fewer.")

    def check_model(self, config: ModelConfig) -> None:
        """Check a model to be built."""
        self._at_most("layers", config.n_layers, self.layers, "Choose fewer.")
        self._at_most("tokens of context", config.context_length, self.context, "Choose a shorter context.")
        self._at_most("different tokens", config.vocab_size, self.vocabulary, "Choose a smaller vocabulary.")
        self._at_most("parameters", config.n_parameters, self.parameters, "Choose a smaller size.")

    def check_training(self, config: ModelConfig, training: TrainConfig) -> None:
        """Check a run to be started: its model, its settings, and the memory that the two need together."""
        self.check_model(config)
        self._at_most("windows per step", training.batch_size * training.accumulation, self.batch, "Lower the batch.")
        if training.steps < 1:
            raise LimitError("A run needs at least one step.")
        self._at_most("steps", training.steps, self.steps, "Choose fewer: you can train the run further afterwards.")
        self.check_prompt(training.sample_prompt)
        if training.eval_windows is None:
            raise LimitError("Choose a number of windows to measure the loss on: all of them would take too long.")
        self._at_most("windows to measure the loss on", training.eval_windows, self.eval_windows, "Choose fewer.")
        self._at_most("tokens per sample", training.sample_tokens, self.new_tokens, "Ask for shorter samples.")
        check_step_memory(config, training.batch_size, self.memory, self.where)

    def snapshots(self, config: ModelConfig) -> int:
        """How many moments of a run to keep in half precision: about 40 for a small model, none for one too large."""
        count = min(SNAPSHOTS, self.snapshot_bytes // (2 * config.n_parameters))
        return count if count >= 4 else 0

    def check_comparison(self, seeds: int) -> None:
        """Check how many pairs are to be trained."""
        self._at_most("seeds", seeds, self.seeds, "Choose fewer: three are enough to tell a difference from luck.")

    def _at_most(self, what: str, asked: int, most: int, remedy: str) -> None:
        if asked > most:
            raise LimitError(f"{asked:,} {what} are too many: {self.where} allows {most:,}. {remedy}")


LOCAL = Limits(
    kind="local",
    where="this machine",
    parameters=60_000_000,
    context=1024,
    vocabulary=210_000,
    layers=32,
    batch=512,
    steps=200_000,
    seconds=6 * 3600.0,
    eval_windows=4096,
    memory=8_000_000_000,
    text_bytes=50_000_000,
    prompt=20_000,
    new_tokens=4096,
    samples=16,
    jobs_per_address=1000,
    jobs=4,
    waiting=16,
    seeds=12,
    models_per_visitor=100,
    models=200,
    model_bytes=4_000_000_000,
    disk_bytes=50_000_000_000,
    keep_days=None,
    snapshot_bytes=400_000_000,
    upload_bytes=4_000_000_000,
    upload_bytes_per_address=4_000_000_000,
)

# fifty visitors on one machine: six models for each, and runs short enough for the queue to move
CLASS = replace(
    LOCAL,
    kind="class",
    where="this class's machine",
    parameters=6_000_000,
    context=256,
    vocabulary=52_000,
    layers=12,
    batch=64,
    steps=5000,
    seconds=240.0,
    eval_windows=1024,
    memory=1_500_000_000,
    text_bytes=2_000_000,
    prompt=4000,
    new_tokens=512,
    samples=4,
    waiting=100,
    seeds=5,
    models_per_visitor=6,
    models=300,
    disk_bytes=20_000_000_000,
    keep_days=7.0,
    snapshot_bytes=24_000_000,
    upload_bytes=2_000_000_000,
    upload_bytes_per_address=1_000_000_000,
)

PUBLIC = replace(
    CLASS,
    kind="public",
    where="the public Space",
    seconds=300.0,
    jobs_per_address=1,
    waiting=60,
    models=120,
    model_bytes=2_000_000_000,
    disk_bytes=10_000_000_000,
    snapshot_bytes=70_000_000,
    upload_bytes_per_address=300_000_000,
)

KINDS = {limits.kind: limits for limits in (LOCAL, CLASS, PUBLIC)}
VARIABLE = "PLAYGROUND_LIMITS"
"""The environment variable that names one of KINDS."""


def limits_here(kind: str | None = None, *, strangers: bool = False) -> Limits:
    """The limits of this place: for the `kind` given here or in VARIABLE, or else for what the place suggests.

    A Hugging Face Space is PUBLIC; a server that `strangers` can reach, over a public link or from the network, is a
    CLASS; anything else is LOCAL. Raises ValueError for an unknown kind.
    """
    kind = kind or os.environ.get(VARIABLE) or None
    if kind is not None and kind not in KINDS:
        raise ValueError(f"there are no limits called {kind!r}: choose {', '.join(KINDS)}")
    if kind is None:
        kind = "public" if os.environ.get("SPACE_ID") else "class" if strangers else "local"
    limits = KINDS[kind]
    # models this small train on one processor each, and the page needs one, too
    return replace(limits, jobs=max(2, processors() - 1)) if kind == "class" else limits


def check_step_memory(config: ModelConfig, batch_size: int, most: int | None, where: str) -> None:
    """Raise LimitError if a training step of this model needs more than `most` bytes, which is what `where` has."""
    needed = training_memory(config, batch_size)
    if most is not None and needed > most:
        raise LimitError(
            f"A step of this run would need about {needed / 1e9:.1f} GB; {where} has {most / 1e9:.1f} GB for it. "
            "Lower the batch, the context or the size."
        )


def training_memory(config: ModelConfig, batch_size: int) -> int:
    """Rough bytes for one forward and backward pass in fp32: kept activations, logits, weights and optimizer state.

    Each token keeps about 10·d_model numbers per layer, four times the width of all heads, and 3·d_ff. It also keeps
    four rows as long as the vocabulary (logits, their softmax, two gradients). Attention weights count only if the
    fused kernel cannot be used.
    """
    tokens = batch_size * config.context_length
    visited = 1 + (config.experts_per_token if config.n_experts else 0)
    per_layer = 10 * config.d_model + 4 * config.n_heads * config.d_head + 3 * config.ff_width * visited
    if config.attention_layout == "separate_heads" or config.dropout:
        per_layer += 3 * config.n_heads * config.context_length
    return 4 * (tokens * (config.n_layers * per_layer + 4 * config.vocab_size) + 6 * config.n_parameters)
