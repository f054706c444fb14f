"""Opening the page: made once for all who ask at the same address, compressed once, and found behind a prefix, too."""

import gzip
import json
import re
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest
from gradio import routes

from playground.ui.app import build_app
from playground.ui.own_files import ASSETS

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
