"""The peers that we are measured against: nanoGPT's own train.py in a process of its own, and Transformers' GPT-2."""

from __future__ import annotations

import pickle
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from playground.data import Corpus
from playground.devices import mixed

SHAPE = {"n_layer": 4, "n_head": 4, "n_embd": 128, "block_size": 64, "batch_size": 12}
_ITERATION = re.compile(r"iter (\d+): loss [\d.]+, time ([\d.]+)ms")


def nanogpt(checkout: Path, corpus: Corpus, steps: int, *, device: str = "cpu") -> tuple[float, float]:
    """(median milliseconds per step, wall seconds of all steps) of nanoGPT's train.py with its CPU recipe.

    Its learning-rate schedule always spans `steps`; evaluations happen only before the first step. Of few steps, only
    half are warm-up: nanoGPT divides by the number of those that are not. On a GPU it trains in bf16.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        data = place / "data" / "corpus"
        data.mkdir(parents=True)
        for split in ("train", "val"):
            np.array(getattr(corpus, split).numpy(), dtype=np.uint16).tofile(data / f"{split}.bin")
        # Without this file nanoGPT would train a head over GPT-2's 50,304 tokens.
        (data / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": corpus.vocab_size}))
        (place / "configurator.py").symlink_to(checkout.resolve() / "configurator.py")
        settings = SHAPE | {
            "dataset": "corpus", "device": device, "compile": False, "eval_interval": 10**9, "eval_iters": 1,
            "log_interval": 1, "max_iters": steps, "lr_decay_iters": steps, "dropout": 0.0, "bias": False,
            "learning_rate": 1e-3, "min_lr": 1e-4, "beta2": 0.99,
            "warmup_iters": min(100, steps // 2), "always_save_checkpoint": False,
            "gradient_accumulation_steps": 1, "dtype": "float32" if device == "cpu" else "bfloat16", "out_dir": "out",
        }  # fmt: skip
        command = [sys.executable, str(checkout.resolve() / "train.py"), *(f"--{k}={v}" for k, v in settings.items())]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True)
        times = [float(ms) for _, ms in _ITERATION.findall(done.stdout)]
        if done.returncode or not times:
            raise SystemExit(f"nanoGPT did not run: {done.stderr.strip().splitlines()[-1:]}")
        return statistics.median(times[5:]), sum(times[1:]) / 1000


def transformers_gpt2(corpus: Corpus, steps: int, device: str = "cpu") -> float:
    """Median milliseconds per step of Transformers' GPT-2 of the same shape in a plain loop, in bf16 on a GPU."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=corpus.vocab_size, n_positions=64, n_embd=128, n_layer=4, n_head=4,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    model, dtype = GPT2LMHeadModel(config).to(device), torch.float32 if device == "cpu" else torch.bfloat16
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99))
    rng, times = torch.Generator().manual_seed(0), []
    for _ in range(steps):
        began = time.perf_counter()
        x, y = (part.to(device) for part in corpus.batch("train", 12, 64, rng))
        with mixed(dtype, torch.device(device)):
            logits = model(x).logits
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times[5:])
