"""Starting and opening the page: options, made once for all at the same address, and found behind a prefix, too."""

import gzip
import json
import re
import socket
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import gradio as gr
import pytest
from gradio import routes

import app as command
from playground.service import data_folder
from playground.service.limits import KINDS
from playground.ui.app import build_app, launch
from playground.ui.own_files import ASSETS
from playground.ui.tabs.train.runs_table import kept_words

from .raw import serving
from .runs import small_limits

PREFIX = "/school/room"


def get(address: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the answer."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=named), timeout=30) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as other:
        return other.code, dict(other.headers), other.read()


def test_a_crowd_that_opens_the_page_has_it_made_once(served, monkeypatch):
    """Each page load copied and serialised the whole configuration anew: five a second, on all processors."""
    _, address = served
    get(address)
    monkeypatch.setattr(routes.ORJSONResponse, "_render", lambda content: pytest.fail("it is made again"))
    bodies = {get(f"{address}?n={n}", user_agent=f"browser {n}", cookie=f"a={n}")[2] for n in range(5)}
    assert len(bodies) == 1


def test_each_address_gets_its_own_page(served):
    _, address = served
    root = json.loads(get(f"{address}config")[2])["root"]
    assert address.startswith(root)
    for _ in range(2):
        elsewhere = json.loads(get(f"{address}config", x_forwarded_host="example.org", x_forwarded_proto="https")[2])
        assert elsewhere["root"] == "https://example.org"
    page = get(address, x_forwarded_host="example.org")[2]
    assert b'"root":"http://example.org"' in page and b"playground-server" in page
    assert json.loads(get(f"{address}config")[2])["root"] == root


@pytest.mark.parametrize("path", ["", "ours/assets/chart.js"])
def test_what_all_visitors_get_is_compressed_and_not_sent_twice(served, path):
    _, address = served
    status, headers, whole = get(address + path)
    assert status == 200 and "content-encoding" not in headers and headers["cache-control"] == "no-cache"
    status, packed, body = get(address + path, accept_encoding="br, gzip")
    assert packed["content-encoding"] == "gzip" and gzip.decompress(body) == whole and len(body) < len(whole) / 2
    assert packed["vary"] == "Accept-Encoding" and packed["content-type"] == headers["content-type"]
    status, _, body = get(address + path, if_none_match=headers["etag"])
    assert (status, body) == (304, b"")


def own_files(page: str) -> set[str]:
    """The addresses of the page's own files, as they occur in it."""
    return set(re.findall(r'ours/[^"\\]+', page))


def test_a_browser_keeps_the_pages_own_files_until_they_change(served):
    _, address = served
    names = own_files(get(address)[2].decode())
    assert len(names) > 8
    own = {str(ASSETS.parents[2]), sys.prefix, tempfile.gettempdir(), str(Path.home()), "/site-packages"} - {"/"}
    said = get(address)[2].decode() + get(f"{address}config")[2].decode()
    assert not [each for each in own if f"{each}/" in said], "no path of the server reaches a visitor"
    assert get(f"{address}ours/assets/../chart.py")[0] == 404
    for name in names:
        status, headers, _ = get(address + name)
        assert status == 200 and "immutable" in headers["cache-control"], name
    (chart,) = (name for name in names if "chart.js" in name)
    other = get(address + re.sub("v=.*", "v=0", chart))
    assert other[0] == 200 and "immutable" not in other[1]["cache-control"]
    assert other[2] == (ASSETS / "chart.js").read_bytes()


# ---- behind a proxy at a prefix --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def within() -> Iterator[str]:
    """The page as a proxy serves it at a prefix: its address without one."""
    with serving(build_app(small_limits()), root_path=PREFIX) as (_, address):
        yield address.rstrip("/")


@pytest.mark.parametrize("passed_on", ["", PREFIX], ids=["a proxy that strips the prefix", "one that does not"])
def test_all_of_the_page_is_found_behind_a_prefix(within, passed_on):
    public = f"http://example.org{PREFIX}/"
    page = get(f"{within}{passed_on}/", x_forwarded_host="example.org")[2].decode()
    assert '<base href="./"' in page and f'"root":"http://example.org{PREFIX}"' in page
    assert '<meta name="playground-server"' in page.partition("</head>")[0], "our scripts come first"
    names = own_files(page)
    assert any("front/panel.js" in name for name in names)
    for asked in (*names, "status", "config", "theme.css"):
        found = urljoin(public, asked)
        assert found.startswith(public)
        status, _, body = get(within + passed_on + found.removeprefix(f"http://example.org{PREFIX}"))
        assert status == 200 and body, asked


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
    assert not (tmp_path / "data").exists() and not page.reach.behind_proxy
    page, said, _ = start("--behind-proxy")
    assert page.registry.data.lasting and gone not in said
    assert page.reach.behind_proxy, "believed only where the owner said so"


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
