"""`doctor` answers everything on every machine: what is broken there is a line, never the end of the report."""

import json
from pathlib import Path

import torch

from playground.cli import doctor, main


def facts(capsys) -> dict:
    capsys.readouterr()
    assert main(["doctor", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_report_is_aligned_lines_without_anybodys_home(capsys):
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == ["versions", "machine", "devices"]
    answers = [line for line in lines if line.startswith(" ")]
    assert all(line[2] != " " and line[38] == " " and line[39] != " " for line in answers)
    assert str(Path.home()) not in "\n".join(lines) and "failed" not in "\n".join(lines)


def test_json_holds_what_a_report_needs(capsys, monkeypatch):
    monkeypatch.setenv("PLAYGROUND_BF16", "1")
    report = facts(capsys)
    assert {"python", "torch", "gradio", "transformers"} <= report["versions"].keys()
    assert report["versions"]["torch"] == torch.__version__
    assert {"system", "processor", "cores", "threads of torch", "kernels of torch"} <= report["machine"].keys()
    assert report["machine"]["bfloat16 declared"] == "1"
    assert report["devices"]["cpu"] == "trains and decodes two tiny models as it should, in fp32 and bf16"


def test_what_auto_chooses_is_said_with_its_reason(capsys, monkeypatch):
    monkeypatch.setenv("PLAYGROUND_BF16", "0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    assert doctor._choice() == "cpu in fp32: torch finds no GPU"
    monkeypatch.setattr(doctor.shutil, "which", lambda name: name)
    monkeypatch.setattr(torch.version, "cuda", None)
    assert doctor._choice() == "cpu in fp32: there is an NVIDIA driver, but this torch was built without CUDA"
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert doctor._choice() == "mps in fp32 for steps of at least 20 GFLOP, cpu in fp32 for smaller ones"
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    assert "a GPU is lent" in doctor._choice()


def test_a_broken_device_is_a_line(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)  # which no driver answers for
    report = facts(capsys)
    assert report["devices"]["cpu"].startswith("trains") and report["devices"]["cuda:0"].startswith("failed: ")


def test_a_question_that_fails_is_a_line_too(capsys, monkeypatch):
    def broken():
        raise RuntimeError(f"{Path.home()}/secret/driver.so cannot be loaded\nand more")

    monkeypatch.setattr(doctor, "processor_name", broken)
    monkeypatch.setenv("PLAYGROUND_BF16", "perhaps")
    report = facts(capsys)
    assert report["machine"]["processor"] == "failed: ~/secret/driver.so cannot be loaded"
    assert report["devices"]["auto"].startswith("failed: PLAYGROUND_BF16 is 'perhaps'")
    assert report["versions"]["python"]
