"""Devices and precisions are chosen by what a machine has or is declared to have."""

import pytest
import torch

from playground.devices import has_fast_bf16, pick_device, pick_precision

CPU = torch.device("cpu")


@pytest.mark.parametrize(("declared", "dtype"), [("1", torch.bfloat16), ("0", torch.float32)])
def test_what_is_declared_overrules_the_hardware(declared, dtype, monkeypatch):
    monkeypatch.setenv("PLAYGROUND_BF16", declared)
    assert has_fast_bf16(CPU) == (declared == "1") and pick_precision("auto", CPU) == dtype
    assert pick_precision("fp32", CPU) == torch.float32 and pick_precision("bf16", CPU) == torch.bfloat16


@pytest.mark.parametrize("name", ["gpu", "meta", "xpu", "", "cpu:x"])
def test_a_device_nobody_has_is_refused_by_name(name):
    with pytest.raises(ValueError, match="choose auto"):
        pick_device(name)


def test_a_gpu_that_is_not_there_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert pick_device("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(ValueError, match=r"2.*0.*'cuda:2'"):
        pick_device("cuda:2")
