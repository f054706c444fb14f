"""Several processes train one model: each reads its rows of every batch, and what they find is added up.

    torchrun --nproc-per-node=2 -m playground train --language stories --out runs/stories

Every process builds the same model from the same seed, draws the same whole batch and takes its own rows of it. Each
row's gradient counts by the real tokens it holds, padding not, so the sum over all processes is the gradient of the
whole batch: the losses are those of one process up to the rounding of sums. Then everyone makes the same step. Only the
first process writes and prints.

Dropout and router noise are drawn by each process for its own rows, from a generator of its own (`noise_seed`), so with
them a run's randomness depends on the number of processes; its law does not.

Communication is torch.distributed's: gloo between CPUs, NCCL between GPUs, and gloo for the one word per step with
which all agree to go on, since a closed gloo connection is noticed at once. Source of the scheme: Li et al. 2020,
"PyTorch Distributed" (without overlapping, which tiny models do not need).

B = rows of a batch, T = context length, L = mixture layers, E = experts.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import torch

from ..devices import pick_device
from .proof import fault, first_line

if TYPE_CHECKING:
    from ..data import Corpus
    from ..model import ModelConfig, Transformer
    from ..model.transformer import ModelOutput
    from .config import TrainConfig

TIMEOUT = timedelta(minutes=3)  # the longest that one process may keep the others waiting, be it to write a sample
ENDINGS = ("", "time", "risen", "stopped")  # what the processes agree on before each step; the last one wins


class WorkerLost(Exception):
    """Another process of this run has died or does not answer."""


class Alone:
    """One process with nobody to agree with: what `train` uses unless it is told otherwise."""

    rank, size, first = 0, 1, True

    def rows(self, x: torch.Tensor) -> torch.Tensor:
        """The part of x (B, …) that is this process's."""
        return x

    def noise_seed(self, seed: int, step: int) -> int:
        """Of this process's dropout, from `step` on."""
        return seed

    def add_up(self, tensors: Sequence[torch.Tensor]) -> None:
        """Put the sum over all processes into each of the tensors."""

    def balance(self, output: ModelOutput, share: float, config: ModelConfig) -> tuple[torch.Tensor, torch.Tensor]:
        """This process's part of the loss that keeps experts in use, and all processes' load (L, E)."""
        return output.balance_loss, output.expert_load

    def agree(self, ending: str) -> str:
        """One of ENDINGS that holds for all; "" is to go on."""
        return ending

    def check_alike(self, facts: Mapping[str, str]) -> None:
        """Raise ValueError unless all processes hold the same facts."""


class Group(Alone):
    """One of several processes. Every method but `rows` and `noise_seed` waits for all the others.

    Raises WorkerLost where one of them is gone.
    """

    def __init__(self, rank: int, size: int):
        self.rank, self.size, self.first = rank, size, rank == 0

    def rows(self, x: torch.Tensor) -> torch.Tensor:
        return x[self.rank :: self.size]

    def noise_seed(self, seed: int, step: int) -> int:
        if self.rank == 0 and step == 0:
            return seed
        mixed = hashlib.sha256(f"{seed}/{self.rank}/{step}".encode()).digest()
        return int.from_bytes(mixed[:7], "little")

    def add_up(self, tensors: Sequence[torch.Tensor]) -> None:
        together = torch.cat([tensor.detach().flatten() for tensor in tensors])  # one message, not one each
        with _or_lost():
            torch.distributed.all_reduce(together)
        for tensor, total in zip(tensors, together.split([tensor.numel() for tensor in tensors])):
            tensor.copy_(total.view_as(tensor))

    def balance(self, output: ModelOutput, share: float, config: ModelConfig) -> tuple[torch.Tensor, torch.Tensor]:
        own, load = output.expert_load, share * output.expert_load
        self.add_up([load])
        loss = output.balance_loss
        if config.balance == "switch":
            # fraction routed · mean probability is no sum over rows: the fraction must be that of the whole batch
            L, E = load.shape
            probability = torch.stack([r.mean_probability() for r in output.routings])  # (L, E)
            loss = loss + config.balance_weight * E / L * ((load - own) * probability).sum()
        return share * loss, load

    def agree(self, ending: str) -> str:
        word = torch.tensor([ENDINGS.index(ending)])
        with _or_lost():
            torch.distributed.all_reduce(word, op=torch.distributed.ReduceOp.MAX)
        return ENDINGS[int(word)]

    def check_alike(self, facts: Mapping[str, str]) -> None:
        for what, fact in facts.items():
            digest = hashlib.sha256(fact.encode()).digest()
            own = torch.tensor(list(digest), dtype=torch.uint8)
            everyones = [torch.empty_like(own) for _ in range(self.size)]
            with _or_lost():
                torch.distributed.all_gather(everyones, own)
            other = next((rank for rank, theirs in enumerate(everyones) if not torch.equal(theirs, own)), None)
            if other is not None:
                raise ValueError(
                    f"processes {self.rank} and {other} of this run do not have the same {what}: "
                    "give every machine the same files and the same command"
                )


ALONE = Alone()


def facts(model: Transformer, corpus: Corpus, config: TrainConfig, step: int) -> dict[str, str]:
    """What all processes have to hold alike when they begin."""
    weights = b"".join(t.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()
                       for t in model.state_dict().values())  # fmt: skip
    return {
        "text": corpus.sha256,
        "settings": repr((config, model.config)),
        "weights": f"{step} {hashlib.sha256(weights).hexdigest()}",
    }


def is_first() -> bool:
    """Whether this process is the one that writes; True where there is only one."""
    return os.environ.get("RANK", "0") == "0" or not _launched()


def speaks() -> bool:
    """Whether this process says what is wrong: the first of each machine."""
    return os.environ.get("LOCAL_RANK", "0") == "0" or not _launched()


@contextmanager
def workers(device: str, *, timeout: timedelta = TIMEOUT) -> Iterator[Alone]:
    """The group that torchrun started this process in, for as long as the block lasts; ALONE if nobody did.

    On GPUs each process takes its own. Raises ValueError where the device cannot be shared out.
    """
    if not _launched():
        yield ALONE
        return
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    rank, size, local, here = (int(os.environ[name]) for name in names)
    kind = pick_device(device).type
    if kind == "mps" or not torch.distributed.is_available():
        raise ValueError("several processes can share CPUs or CUDA GPUs, not Apple's GPU: add --set device=cpu")
    if kind == "cuda":
        if here > torch.cuda.device_count():
            raise ValueError(
                f"this machine has {torch.cuda.device_count()} GPUs for {here} processes: "
                f"use --nproc-per-node={torch.cuda.device_count()}, or --set device=cpu"
            )
        torch.cuda.set_device(local)
        if problem := fault(torch.device("cuda", local), torch.float32):
            raise ValueError(f"process {rank} cannot use its GPU, so none should: add --set device=cpu ({problem})")
        os.environ.setdefault("TORCH_NCCL_BLOCKING_WAIT", "1")  # a lost process becomes an error, not an abort
    backend = "cpu:gloo,cuda:nccl" if kind == "cuda" else "gloo"
    try:
        torch.distributed.init_process_group(backend, timeout=timeout, rank=rank, world_size=size)
    except (RuntimeError, ValueError) as problem:
        raise ValueError(
            f"the {size} processes of this run could not find each other: {first_line(problem)}"
        ) from problem
    try:
        yield Group(rank, size)
    finally:
        torch.distributed.destroy_process_group()


def _launched() -> bool:
    """Whether torchrun, or something that sets the same variables, started this as one of several processes."""
    needed = ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and all(name in os.environ for name in needed)


@contextmanager
def _or_lost() -> Iterator[None]:
    """Turn what torch.distributed raises into WorkerLost."""
    try:
        yield
    except RuntimeError as problem:  # DistBackendError, timeouts and closed connections are all RuntimeErrors
        raise WorkerLost(first_line(problem)) from problem
