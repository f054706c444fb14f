"""A device is used only where it computes what the processor computes; where not, it is known what is wrong."""

import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from playground.data import corpus_from_text
from playground.model import PRESETS, ModelConfig, Transformer
from playground.training import Noticed, Started, TrainConfig, proof, train
from playground.training.events import DEVICE_FAULT
from playground.training.proof import Fault, device_for, fault

CPU, META = torch.device("cpu"), torch.device("meta")
TRAINING = TrainConfig(steps=2, batch_size=2, eval_every=0, eval_windows=2)


class WrongKernel(TorchDispatchMode):
    """One operation of torch whose numbers come out wrong by a factor, on a device that is otherwise the processor."""

    def __init__(self, name: str, factor: float = 1.05):
        super().__init__()
        self.name, self.factor, self.calls = name, factor, 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        if str(operation).startswith(f"aten.{self.name}."):
            self.calls += 1
            changed = args[0] if result is None else result  # a fused optimizer writes into its arguments
            for tensor in changed if isinstance(changed, (tuple, list)) else (changed,):
                if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
                    tensor.mul_(self.factor)
        return result


@pytest.fixture(autouse=True)
def nothing_remembered():
    proof._fault.cache_clear()
    assert fault(CPU, torch.float32) is None  # and what is right is known from here on
    proof._fault.cache_clear()
    yield
    proof._fault.cache_clear()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("declared", ["0", "1"])
def test_the_processor_proves_itself_in_every_precision(dtype, declared, monkeypatch):
    monkeypatch.setenv("PLAYGROUND_BF16", declared)
    before = torch.get_rng_state()
    assert fault(CPU, dtype) is None
    assert torch.equal(torch.get_rng_state(), before), "nothing of torch's own randomness is used"


@pytest.mark.parametrize(
    ("kernel", "where"),
    [
        ("embedding", "the decoding"),
        ("linear", "the decoding"),
        ("cat", "the gradient"),
        ("mm", "the gradient"),
        ("nll_loss_backward", "the gradient"),
        ("native_layer_norm_backward", "the gradient"),
        ("_fused_adamw_", "the optimizer's step"),
        ("baddbmm", "the optimizer's step"),
        ("sin", "the decoding"),
        ("_grouped_mm", "the decoding"),
        ("silu_backward", "the gradient"),
    ],
)
def test_a_kernel_that_is_five_percent_wrong_is_found(kernel, where):
    with WrongKernel(kernel) as wrong:
        found = fault(CPU, torch.float32)
    assert wrong.calls
    assert found.part == where and found.off > 0.01 and not found.error
    assert (found.device, found.precision) == ("cpu", "float32")


def test_numbers_that_are_none_are_wrong():
    with WrongKernel("gelu", factor=float("nan")):
        assert math.isnan(fault(CPU, torch.float32).off)


def test_a_device_that_fails_is_quoted_and_asked_once(monkeypatch):
    assert fault(META, torch.float32).error

    def no_kernel(*_, **__):
        raise RuntimeError("no kernel\nmore lines")

    monkeypatch.setattr(proof, "generate", no_kernel)
    assert fault(CPU, torch.bfloat16) == Fault("cpu", "float32", error="no kernel")
    monkeypatch.setattr(proof, "_answers", lambda *_: pytest.fail("asked again"))
    assert fault(META, torch.float32).device == "meta"


def test_a_run_on_a_device_without_proof_says_so_and_trains_on_the_processor(monkeypatch):
    monkeypatch.setattr(proof, "pick_device", lambda *_: META)
    corpus = corpus_from_text("a stitch in time saves nine. " * 20)
    model = Transformer(ModelConfig(corpus.vocab_size, context_length=8, n_layers=1, d_model=16, n_heads=2))
    events = list(train(model, corpus, TRAINING))
    assert isinstance(events[0], Noticed) and events[0].kind == DEVICE_FAULT and events[0].facts["device"] == "meta"
    assert isinstance(events[1], Started) and events[1].device == "cpu"
    assert events[-1].reason == "done"


@pytest.mark.parametrize(("preset", "device"), [("tiny", "cpu"), ("small", "cpu"), ("gpt2-small", "mps")])
def test_apples_gpu_is_for_models_that_are_large_enough(preset, device, monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(proof, "_fault", lambda *_: None)
    config = PRESETS[preset]
    assert device_for(TRAINING.replace(batch_size=12), config) == (torch.device(device), None)
    assert device_for(TRAINING.replace(device="mps"), config)[0].type == "mps"  # whoever asks for it gets it
