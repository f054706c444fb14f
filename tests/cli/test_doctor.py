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
    assert all(line[0] != " " and line[24] == " " and line[25] != " " for line in lines)
    assert str(Path.home()) not in "\n".join(lines) and "failed" not in "\n".join(lines)


def test_a_broken_device_or_a_question_that_fails_is_a_line(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)  # which no driver answers for
    report = facts(capsys)
    assert report["device cpu"].startswith("trains") and report["device cuda:0"].startswith("failed: ")

    def broken():
        raise RuntimeError(f"{Path.home()}/secret/driver.so cannot be loaded\nand more")

    monkeypatch.setattr(doctor, "processor_name", broken)
    monkeypatch.setenv("PLAYGROUND_BF16", "perhaps")
    report = facts(capsys)
    assert report["processor"].startswith("failed: ~/secret/driver.so")
    assert report["trains large models on"].startswith("failed: PLAYGROUND_BF16") and report["python"]
