"""The page starts on a machine that is slow to answer, and behind a proxy that knows nothing of it."""

import http.server
import threading
import urllib.request

import gradio as gr
import pytest

from playground.ui import app, reachable
from playground.ui.reachable import answers, without_proxy


@pytest.fixture
def busy():
    """The address of a server that fails for the first three tries, and what it was asked."""
    asked = []

    class Busy(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self):
            asked.append(self.path)
            self.send_response(200 if len(asked) > 3 else 503)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Busy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", asked
    server.shutdown()
    server.server_close()


def test_a_busy_server_is_asked_again(busy, monkeypatch):
    address, asked = busy
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # where nobody listens
    assert answers(address, patience=30) and len(asked) == 4


def test_who_never_answers_is_given_up(busy):
    address, asked = busy
    assert not answers(address, patience=0) and len(asked) == 1
    assert not answers("http://127.0.0.1:9/", patience=0)


def test_own_server_is_reached_past_a_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "intranet")
    monkeypatch.setenv("NO_PROXY", "")
    without_proxy("10.0.0.7")
    without_proxy("10.0.0.7")
    assert urllib.request.getproxies()["no"] == "intranet,localhost,127.0.0.1,10.0.0.7"


def started(monkeypatch, **answering):
    """The words of a start, with a page that answers or not."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setattr(gr.networking, "url_ok", lambda url: False)  # as on a machine too busy for gradio's patience
    monkeypatch.setattr(app, "answers", lambda address: reachable.answers(address, **answering))
    page = app.build_app()
    try:
        app.launch(page, port=None, prevent_thread_lock=True, quiet=True)
        return page.local_url
    finally:
        page.close(verbose=False)


def test_the_page_starts_where_gradio_would_give_up(monkeypatch, capsys):
    assert started(monkeypatch).startswith("http://127.0.0.1:")
    assert capsys.readouterr().err == ""


def test_a_page_that_does_not_answer_is_a_sentence_and_is_served(monkeypatch, capsys):
    monkeypatch.setattr(
        reachable.urllib.request.OpenerDirector, "open", lambda *_, **__: (_ for _ in ()).throw(OSError())
    )
    assert started(monkeypatch, patience=0)
    assert "not answered" in capsys.readouterr().err
