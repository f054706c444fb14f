"""ZeroGPU: training in short slices on a GPU that a Space borrows. Nothing learned in a slice is lost.

On ZeroGPU only a function marked with `spaces.GPU` may touch the GPU, for some seconds, and it runs in a forked worker:
whatever it changes stays there. So `train_in_slices` does what `training.train` promises by sending everything through
the iterator. The run's state goes in as bytes; out come events and, about every second, the state after them, from
which the next slice continues. Events are handed on only together with the state that they led to, so that a slice may
be cut off at any moment. If no GPU can be had, the run continues on the processor.

Generation and inspection of models this small need no GPU and stay on the processor.
"""

from __future__ import annotations

import logging
import pickle
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic

import safetensors.torch
import torch

from ..atomic_files import write_file
from ..data import Corpus
from ..devices import on_zerogpu
from ..model import ModelConfig, Transformer
from ..training import (
    BestKept,
    Noticed,
    Sampled,
    Saved,
    SettingsChanged,
    Started,
    Stepped,
    TrainConfig,
    TrainEvent,
    train,
)
from ..training.autosave import FILE
from ..training.events import NO_GPU, NOT_COMPILED
from .runs import run_training

logger = logging.getLogger(__name__)

REQUESTED_SECONDS = 25  # the seconds that a slice asks for; quotas and places in the queue depend on it
SLICE_SECONDS = 15.0  # after these seconds it ends with the next state sent
STATE_SECONDS = 1.0  # how often the state is sent: a press of Stop can lose this much
DEVICE = "cuda"


@dataclass(frozen=True)
class Slice:
    """What is sent to a slice. Pickled here and unpickled in our own worker; no tensor crosses as shared memory."""

    model: ModelConfig
    corpus: Corpus
    training: TrainConfig
    weights: bytes | None
    """The state with which the run begins."""
    state: bytes | None
    """Or, for a run that continues, the file that `autosave` wrote."""


@dataclass(frozen=True)
class Parcel:
    """What a slice sends back: events, and the state after them."""

    events: tuple[tuple[TrainEvent, bytes | None], ...]
    """Each event, with the weights of that moment if its receiver may want to use the model."""
    state: bytes | None = None
    """The state from which the run can continue after these events."""
    weights: bytes | None = None
    """The model after the last event of the run."""
    problem: str | None = None
    """The message of a ValueError."""


def work(sent: bytes) -> Iterator[bytes]:
    """Train one slice in the worker for some seconds, yielding pickled Parcels. Ends after sending a state."""
    slice_ = pickle.loads(sent)
    torch.set_num_threads(1)  # OpenMP's threads do not survive a fork
    began = monotonic()
    try:
        with tempfile.TemporaryDirectory() as temporary:
            for parcel in _parcels(slice_, Path(temporary)):
                yield pickle.dumps(parcel)
                if parcel.state is not None and monotonic() - began >= SLICE_SECONDS:
                    return
    except ValueError as problem:
        yield pickle.dumps(Parcel((), problem=str(problem)))


def _parcels(slice_: Slice, folder: Path) -> Iterator[Parcel]:
    config = slice_.training.replace(autosave_seconds=STATE_SECONDS, compile=False)
    model = Transformer(slice_.model)
    if slice_.state is not None:
        (folder / FILE).write_bytes(slice_.state)
    else:
        model.load_state_dict(safetensors.torch.load(slice_.weights))
    events: list[tuple[TrainEvent, bytes | None]] = []
    for event in train(model, slice_.corpus, config, folder=folder, resume=slice_.state is not None):
        if isinstance(event, Stepped) and events and not _stepped(events):
            yield Parcel(tuple(events))  # events before the first step can be shown at once
            events = []
        events.append((event, _pack(model) if isinstance(event, Sampled) else None))
        if isinstance(event, Saved) and event.step < config.steps:
            yield Parcel(tuple(events), state=(folder / FILE).read_bytes())
            events = []
    state = (folder / FILE).read_bytes() if (folder / FILE).exists() else None
    yield Parcel(tuple(events), state=state, weights=_pack(model))


def _stepped(events: list[tuple[TrainEvent, bytes | None]]) -> bool:
    return any(isinstance(event, Stepped) for event, _ in events)


def _pack(model: Transformer) -> bytes:
    return safetensors.torch.save({n: t.detach().to("cpu", copy=True) for n, t in model.state_dict().items()})


Work = Callable[[bytes], Iterator[bytes]]


def _marked() -> Work:
    """`work`, marked as ZeroGPU requires; unchanged where the package `spaces` is not needed."""
    if not on_zerogpu():
        return work
    import spaces

    return spaces.GPU(duration=REQUESTED_SECONDS)(work)


# marked during import: a ZeroGPU Space without such a function at its start is stopped
on_gpu: Work = _marked()


def train_in_slices(
    model: Transformer,
    corpus: Corpus,
    config: TrainConfig,
    *,
    folder: str | Path | None = None,
    resume: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[TrainEvent]:
    """Like `training.train`, on a borrowed GPU; `should_stop` is called about every second."""
    if config.device == "cpu":
        yield from train(model, corpus, config, folder=folder, resume=resume, should_stop=should_stop)
        return
    with tempfile.TemporaryDirectory() as temporary:
        run = _Sliced(model, corpus, config, Path(folder or temporary), resume)
        yield from run.events(should_stop)


class _Sliced:
    """A run seen from the main process: what has been shown, and the state that goes with it."""

    def __init__(self, model: Transformer, corpus: Corpus, config: TrainConfig, folder: Path, resume: bool):
        self.model, self.corpus, self.config, self.file = model, corpus, config, folder / FILE
        self.state = self.file.read_bytes() if resume else None
        if resume:
            self._load(_weights_in(self.state))
        self.step = 0
        self.shown: set[type] = set()  # kinds of events before the first step, which a second start would repeat
        self.best: int | None = None  # the step of the last weights handed over, which each start would repeat

    def events(self, should_stop: Callable[[], bool]) -> Iterator[TrainEvent]:
        """All events of the run."""
        if self.config.compile:
            yield Noticed(0, 0.0, NOT_COMPILED, {"error": "ZeroGPU"})
        while True:
            parcels = on_gpu(pickle.dumps(self._next_slice()))
            try:
                while (parcel := _received(parcels)) is not None:
                    yield from self._unpack(parcel)
                    if parcel.weights is not None:
                        return
                    if should_stop():
                        yield from self._here(lambda: True)  # the trainer's own ending, after our last state
                        return
            except _NoGpu:
                yield Noticed(self.step, 0.0, NO_GPU, {})
                yield from self._here(should_stop)
                return
            finally:
                parcels.close()

    def _next_slice(self) -> Slice:
        corpus = replace(self.corpus, language=None)  # the trainer asks only for tokens
        training = self.config.replace(device=DEVICE)
        weights = _pack(self.model) if self.state is None else None
        return Slice(self.model.config, corpus, training, weights, self.state)

    def _unpack(self, parcel: Parcel) -> Iterator[TrainEvent]:
        if parcel.problem is not None:
            raise ValueError(parcel.problem)
        if parcel.state is not None:
            self._keep(parcel.state)
        for event, weights in parcel.events:
            if weights is not None:
                self._load(safetensors.torch.load(weights))
            yield from self._show(replace(event, path=str(self.file)) if isinstance(event, Saved) else event)
        if parcel.weights is not None:
            self._load(safetensors.torch.load(parcel.weights))
        elif parcel.state is not None:
            self._load(_weights_in(parcel.state))

    def _here(self, should_stop: Callable[[], bool]) -> Iterator[TrainEvent]:
        """The rest of the run in this process, from the last state."""
        precision = "auto" if self.config.precision == "fp16" else self.config.precision
        config = self.config.replace(device="cpu", precision=precision, compile=False)
        resume = self.state is not None
        rest = train(self.model, self.corpus, config, folder=self.file.parent, resume=resume, should_stop=should_stop)
        for event in rest:
            yield from self._show(event)

    def _show(self, event: TrainEvent) -> Iterator[TrainEvent]:
        """The event, unless a later slice or the processor repeats what has been shown."""
        beginning = isinstance(event, (Started, SettingsChanged)) or event.step == 0
        if beginning and type(event) in self.shown:
            return
        if beginning:
            self.shown.add(type(event))
        if isinstance(event, BestKept):
            if event.best_step == self.best:
                return
            self.best = event.best_step
        self.step = event.step
        yield event

    def _keep(self, state: bytes) -> None:
        self.state = state
        self.file.parent.mkdir(parents=True, exist_ok=True)
        write_file(self.file, lambda partial: partial.write_bytes(state))

    def _load(self, weights: dict[str, torch.Tensor]) -> None:
        self.model.load_state_dict(weights)


class _NoGpu(Exception):
    """A slice was refused or taken away."""


def _received(parcels: Iterator[bytes]) -> Parcel | None:
    """The next parcel; None at the slice's end. Raises _NoGpu for any complaint from ZeroGPU."""
    try:
        return pickle.loads(next(parcels))
    except StopIteration:
        return None
    except Exception as problem:  # quota, queue, a worker that died: gr.Error or RuntimeError, with ZeroGPU's words
        logger.warning("no GPU slice: %s: %s", type(problem).__name__, problem)
        raise _NoGpu from problem


def _weights_in(state: bytes) -> dict[str, torch.Tensor]:
    tensors = safetensors.torch.load(state)
    return {name.removeprefix("model/"): tensor for name, tensor in tensors.items() if name.startswith("model/")}


run_in_slices = partial(run_training, trainer=train_in_slices)
"""The runner for `Board(runner=…)` on ZeroGPU."""
