"""What `python app.py` makes of its options: what is kept, for how long, and who may use the machine's Hub login."""

import socket

import gradio as gr
import pytest

import app as command
from playground.service import data_folder
from playground.service.limits import KINDS
from playground.ui.app import build_app, launch
from playground.ui.tabs.train.runs_table import kept_words


@pytest.fixture
def start(tmp_path, monkeypatch):
    """`start(*options)` → the page as they make it; its data folder would be `tmp_path / "data"`."""
    monkeypatch.setattr("playground.processes.tune_process", lambda **_: None)
    monkeypatch.setattr(data_folder.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setenv(data_folder.VARIABLE, str(tmp_path / "data"))
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "sent"))

    def start(*options: str):
        blocks, host, _ = command.prepare(command.parse(list(options)))
        said = " ".join(str(block.value) for block in blocks.blocks.values() if isinstance(block, gr.HTML))
        return blocks.page, said, host

    return start


def test_a_page_that_keeps_nothing_says_so_before_training_and_the_others_say_how_long(start, tmp_path):
    page, said, _ = start("--ephemeral")
    gone = kept_words(page.limits, lasting=False)
    assert not page.registry.data.lasting and said.count(gone) == 1
    page.registry.data.keep_lessons("anna", "{}")
    assert not (tmp_path / "data").exists() and page.reach.owner == "" and not page.reach.behind_proxy
    page, said, _ = start("--use-hub-login", "--behind-proxy")
    assert page.registry.data.lasting and gone not in said
    assert len(page.reach.owner) >= 24 and page.reach.behind_proxy, "believed only where the owner said so"


def test_a_space_without_a_disk_keeps_nothing_for_good(monkeypatch, tmp_path):
    monkeypatch.delenv(data_folder.VARIABLE, raising=False)
    monkeypatch.setenv("SPACE_ID", "anna/playground")
    monkeypatch.setattr(data_folder.Path, "is_dir", lambda path: False)
    assert not data_folder.DataFolder(tmp_path / "data").lasting
    monkeypatch.setattr(data_folder.Path, "is_dir", lambda path: str(path) == "/data")
    assert data_folder.data_folder() == data_folder.Path("/data") and data_folder.keeps_for_good()


@pytest.mark.parametrize("limits", KINDS.values(), ids=KINDS)
def test_retention_is_a_week_where_others_come_and_for_ever_at_home(limits):
    assert limits.keep_days == (None if limits.kind == "local" else 7)
    assert ("7 days" in kept_words(limits, lasting=True)) == (limits.kind != "local")


def test_the_page_starts_where_gradio_would_give_up_and_behind_a_proxy(monkeypatch, capsys):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # where nobody listens
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setattr(gr.networking, "url_ok", lambda url: False)  # as on a machine too busy for gradio's patience
    page = build_app()
    with socket.create_server(("127.0.0.1", 0)) as free:  # among gradio's own ports, tests beside this one look, too
        port = free.getsockname()[1]
    launch(page, port=port, prevent_thread_lock=True, quiet=True)
    page.close(verbose=False)
    assert page.local_url.startswith("http://127.0.0.1:") and capsys.readouterr().err == ""
