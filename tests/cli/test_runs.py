"""`runs` lists what the page keeps, also while the page runs."""

import json

from playground.cli import main
from playground.service.data_folder import VARIABLE, DataFolder, new_id
from playground.service.models import Registry
from tests.service.test_board import checkpoint
from tests.ui.runs import ANNA, small_limits


def test_models_are_listed_with_folders_that_other_commands_open(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    registry = Registry(small_limits(), tmp_path / "none", DataFolder(tmp_path))
    ids = [registry.add(ANNA, checkpoint(name)) for name in ("first", "second")]
    assert main(["runs", "--json"]) == 0
    models = json.loads(capsys.readouterr().out)
    assert [model["id"] for model in models] == ids[::-1] and models[0]["name"] == "second"
    assert main(["runs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and lines[0].endswith(f"second  {models[0]['folder']}")
    assert main(["generate", models[1]["folder"], "--prompt", "a", "--max-new-tokens", "3"]) == 0
    registry.data.close()
    # One of 64 models could not be named in the shell.
    assert not any(new_id().startswith("-") for _ in range(2000))
