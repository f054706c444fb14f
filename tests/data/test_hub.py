"""Text from the Hub: the real loading code against a server on loopback that speaks the Hub's interface."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import pytest

from playground.data import TextError, read_hub

COMMIT = "0" * 40
FILES = {"story.txt": b"Once upon a time there was a small server.\n" * 3, "picture.txt": b"\x89PNG\0\0"}


class Hub(BaseHTTPRequestHandler):
    def do_POST(self):
        form = self.rfile.read(int(self.headers["content-length"])).decode()
        wanted = parse_qs(form)["paths"]
        if "/datasets/user/tales/" not in self.path:
            return self._answer(404, b"{}", {"x-error-code": "RepoNotFound"})
        found = [{"type": "file", "path": p, "size": len(FILES[p]), "oid": "1" * 40} for p in wanted if p in FILES]
        return self._answer(200, json.dumps(found).encode(), {"content-type": "application/json"})

    def do_HEAD(self):
        name = self.path.rsplit("/", 1)[1]
        if name not in FILES:
            return self._answer(404, b"", {"x-error-code": "EntryNotFound"})
        headers = {"etag": f'"{name}"', "x-repo-commit": COMMIT}
        return self._answer(200, FILES[name], headers)

    def do_GET(self):
        self.do_HEAD()

    def _answer(self, status, body, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def hub(tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_text_file_is_fetched(hub):
    assert read_hub("user/tales", "story.txt", endpoint=hub) == FILES["story.txt"].decode()


@pytest.mark.parametrize(
    ("repo", "file", "sentence"),
    [
        ("user/tales", "missing.txt", "there is no file missing.txt in user/tales"),
        ("user/nothing", "story.txt", "there is no public dataset user/nothing"),
        ("user/tales", "picture.txt", "binary"),
        ("not a name!", "story.txt", "write it as user/name"),
        ("", "story.txt", "name a repository"),
    ],
)
def test_what_cannot_be_fetched_is_a_sentence(hub, repo, file, sentence):
    with pytest.raises(TextError, match=sentence):
        read_hub(repo, file, endpoint=hub)


def test_a_file_that_is_too_large_is_never_downloaded(hub):
    with pytest.raises(TextError, match="MB can be used here"):
        read_hub("user/tales", "story.txt", endpoint=hub, max_bytes=10)


def test_offline_is_a_sentence(tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(TextError, match="check the connection, or paste the text"):
        read_hub("user/tales", "story.txt", endpoint="http://127.0.0.1:9")
