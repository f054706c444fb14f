"""`runs` shows and changes what the page keeps, unless the page does so; `doctor` answers on every machine."""

import json
from pathlib import Path

import pytest
import torch

from playground.cli import doctor, main
from playground.service.data_folder import VARIABLE, DataFolder, new_id
from playground.service.models import Registry
from tests.cli.refusals import check_refused
from tests.service.test_board import checkpoint
from tests.ui.runs import ANNA, small_limits


@pytest.fixture
def kept(tmp_path, monkeypatch) -> list[str]:
    """The ids of two models that a page has kept before it was stopped."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    registry = Registry(small_limits(), tmp_path / "none", DataFolder(tmp_path))
    ids = [registry.add(ANNA, checkpoint(name)) for name in ("first", "second")]
    registry.data.close()
    return ids


def test_models_are_listed_opened_renamed_and_deleted_for_the_page_too(kept, capsys, tmp_path):
    assert main(["runs", "--json"]) == 0
    models = json.loads(capsys.readouterr().out)
    assert [model["id"] for model in models] == kept[::-1] and models[0]["name"] == "second"
    assert main(["runs"]) == 0 and capsys.readouterr().out.count("\n") == 2
    assert main(["runs", "--open", kept[0][:8]]) == 0
    folder = capsys.readouterr().out.strip()
    assert main(["generate", folder, "--prompt", "a", "--max-new-tokens", "3"]) == 0
    assert main(["runs", "--rename", kept[0], " The  best "]) == 0
    assert main(["runs", "--delete", kept[1]]) == 0
    capsys.readouterr()
    registry = Registry(small_limits(), tmp_path / "none", DataFolder(tmp_path))
    assert [entry.name for entry in registry.models(ANNA)] == ["The best"]
    assert registry.get(kept[0], ANNA).name == "The best" and not registry.data.folder_of(kept[1]).exists()


def test_what_cannot_be_done_is_a_sentence_and_no_id_looks_like_an_option(kept, tmp_path, capsys):
    check_refused(capsys, ["runs", "--open", "nothing"], "with 'nothing'")
    check_refused(capsys, ["runs", "--rename", kept[0], " "], "from 1 to 60")
    page = DataFolder(tmp_path)
    check_refused(capsys, ["runs", "--delete", kept[0]], "is running")
    assert main(["runs"]) == 0
    page.close()
    # One of 64 models could not be named in the shell.
    assert not any(new_id().startswith("-") for _ in range(2000))


def facts(capsys) -> dict:
    capsys.readouterr()
    assert main(["doctor", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_report_is_aligned_lines_and_what_is_broken_is_one(capsys, monkeypatch):
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line[0] != " " and line[24] == " " and line[25] != " " for line in lines)
    assert str(Path.home()) not in "\n".join(lines) and "failed" not in "\n".join(lines)
    missing = torch.cuda.device_count()
    monkeypatch.setattr(torch.cuda, "device_count", lambda: missing + 1)  # one more than a driver answers for
    report = facts(capsys)
    assert report["device cpu"].startswith("trains") and report[f"device cuda:{missing}"].startswith("failed: ")

    def broken():
        raise RuntimeError(f"{Path.home()}/secret/driver.so cannot be loaded\nand more")

    monkeypatch.setattr(doctor, "processor_name", broken)
    monkeypatch.setenv("PLAYGROUND_BF16", "perhaps")
    report = facts(capsys)
    assert report["processor"].startswith("failed: ~/secret/driver.so")
    assert report["trains large models on"].startswith("failed: PLAYGROUND_BF16") and report["python"]
