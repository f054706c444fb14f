"""Models that come and go: by whose login, within which limits, and whose they are; against the stand-in Hub."""

import io
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from gradio.utils import get_upload_folder
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.testclient import TestClient

from playground.data.tokenizers import CharTokenizer
from playground.model import ModelConfig, Transformer
from playground.service.models import SHIPPED_FOLDER, Registry
from playground.storage import Checkpoint
from playground.storage.archive import pack
from playground.training import History
from playground.ui import made_files
from playground.ui.forms import run as form
from playground.ui.panel import Asked
from playground.ui.tabs.train.hub import pull, push
from playground.ui.tabs.train.takeaway import Make, _giving, bring, files, received
from playground.ui.where import Reach, is_loopback, network_of
from tests.standins.hub import Account

from .panels import page_of
from .runs import ANNA, BERT, small_limits

OWNER, VISITOR = "hf_ownersSecret", "hf_oauth_visitorsSecret"


@pytest.fixture
def hub(hub, monkeypatch):
    """The machine's stored login is the owner's."""
    hub.accounts = {OWNER: Account("owner"), VISITOR: Account("visitor")}
    monkeypatch.setenv("HF_TOKEN", OWNER)
    return hub


def asked(client="127.0.0.1", **headers) -> SimpleNamespace:
    """A request as gradio shows it to handlers."""
    raw = [(name.encode(), line.encode()) for name, lines in headers.items() for line in lines.split("\n")]
    return SimpleNamespace(headers=Headers(raw=raw), client=SimpleNamespace(host=client))


def section(**limits):
    """A page, and what the buttons of its Hub section do: (name, visitor, request, **fields) → answer."""
    page = page_of(Registry(small_limits(**limits), SHIPPED_FOLDER))
    deeds = {"push": push, "pull": pull}

    def do(deed, visitor, request, **fields):
        return deeds[deed](page, Asked(visitor, {"model": "shipped-sentences", **fields}, None, request))

    return page, do


def signed_in_as(token: str, ends: float | None = None):
    """The request of somebody who has signed in with gr.LoginButton."""
    request = asked()
    request.scope = {"session": {"oauth_info": {"access_token": token, "expires_at": ends}}}
    return request


def test_a_model_goes_to_the_hub_and_comes_back_to_whoever_pulls_it(hub):
    page, do = section()
    said = do("push", ANNA, asked(), name=" words ", private=True, token=OWNER)["shows"]["pushed"]
    assert f'href="{hub.address}/owner/words"' in said and said.startswith('<p class="quiet-line">Made')
    assert hub.repo("owner/words").private
    answer = do("pull", BERT, asked(), repo="owner/words", token=OWNER)
    chosen, registry = answer["choose"], page.registry
    assert registry.get(chosen, BERT).name == "owner/words" and "owner/words" in answer["shows"]["pulled"]
    assert not registry.has(chosen, ANNA)
    hub.repo("owner/words").private = False


def test_on_a_space_everybody_has_but_their_own_login(hub, monkeypatch):
    _, do = section()
    do("push", ANNA, asked(), name="secret", private=True, token=OWNER)
    monkeypatch.setenv("SPACE_ID", "owner/space")
    _, do = section()
    for request in (asked(), signed_in_as(VISITOR, ends=1.0)):
        with pytest.raises(ValueError, match="Hugging Face"):
            do("push", ANNA, request, name="words", token=VISITOR)
    with pytest.raises(ValueError, match="is private"):
        do("pull", ANNA, asked(), repo="owner/secret")
    for n, ends in enumerate((None, time.time() + 60)):
        assert f"visitor/words{n}" in str(do("push", ANNA, signed_in_as(VISITOR, ends), name=f"words{n}"))
    with pytest.raises(ValueError, match="change owner/words") as refused:
        do("push", ANNA, signed_in_as(VISITOR), name="owner/words")
    assert VISITOR not in str(refused.value)


def test_nobody_uses_the_stored_login(hub):
    _, do = section()
    with pytest.raises(ValueError, match="your own"):
        do("push", ANNA, asked(host="127.0.0.1:7860"), name="words")
    hub.add("owner/secret", {}, private=True)
    with pytest.raises(ValueError, match="is private"):
        do("pull", ANNA, asked(host="127.0.0.1:7860"), repo="owner/secret")


@pytest.mark.parametrize(
    ("reach", "forwarded", "client", "origin"),
    [
        (Reach(), "9.9.9.9", "203.0.113.7", "203.0.113.7"),
        (Reach(), "9.9.9.9", "127.0.0.1", "127.0.0.1"),
        (Reach(behind_proxy=True), "6.6.6.6, 198.51.100.3", "127.0.0.1", "198.51.100.3"),
        (Reach(behind_proxy=True), "6.6.6.6\n198.51.100.3", "127.0.0.1", "198.51.100.3"),
        (Reach(behind_proxy=True), "6.6.6.6, 192.168.1.20", "127.0.0.1", "192.168.1.20"),
        (Reach(behind_proxy=True, on_space=True), "6.6.6.6, 8.8.4.4, 10.20.0.9", "10.20.0.1", "8.8.4.4"),
        (Reach(behind_proxy=True), "", "127.0.0.1", "127.0.0.1"),
    ],
)
def test_only_what_the_proxy_wrote_says_from_where(reach, forwarded, client, origin):
    headers = {"x-forwarded-for": forwarded} if forwarded else {}
    assert reach.origin_of(asked(client, **headers)) == origin


def test_addresses_of_one_network_count_as_one_and_those_of_this_machine_are_known():
    assert all(map(is_loopback, ("127.0.0.1", "localhost", "::1", "127.8.8.8")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.1.7", "my-machine", "localhost.evil.example", "")))
    assert network_of("2001:db8:1:2::7") == network_of("2001:db8:1:2:ffff::1") == "2001:db8:1:2::/64"
    assert network_of("2001:db8:1:3::7") != network_of("2001:db8:1:2::7")
    assert network_of("::ffff:198.51.100.3") == network_of("198.51.100.3") == "198.51.100.3"
    assert len(network_of("x" * 5000)) == 60


def test_a_model_beyond_the_limits_stays_where_it_is(hub):
    _, do = section()
    do("push", ANNA, asked(), name="words", token=OWNER)
    page, do = section(layers=1)
    with pytest.raises(ValueError, match="too many"):
        do("pull", ANNA, asked(), repo="owner/words")
    assert not [entry for entry in page.registry.models(ANNA) if not entry.shipped]


def zipped(tmp_path, name: str = "mine.zip", **config):
    """A model's zip, as another page would have made it."""
    made = ModelConfig(**{"vocab_size": 6, "context_length": 8, "n_layers": 1, "d_model": 8, "n_heads": 2, **config})
    return pack(Checkpoint(Transformer(made), CharTokenizer("abcde"), History(), "Anna's"), tmp_path / name)


@pytest.mark.parametrize(
    ("limits", "complaint"),
    [({"parameters": 500}, "parameters.*many"), ({"parameters": -2_499_900}, "MB can be opened")],
)
def test_models_beyond_a_limit_are_refused(tmp_path, limits, complaint):
    with pytest.raises(ValueError, match=complaint):
        received(zipped(tmp_path), SimpleNamespace(limits=small_limits(**limits)))


def served(link: str) -> tuple[int, bytes]:
    """What the route of made files answers for a link."""
    answer = TestClient(Starlette(routes=[made_files.made_route()])).get(f"/{link}")
    return answer.status_code, answer.content


def a_zip(seen: list[Path]) -> Make:
    def make(visitor, model_id, folder):
        path = folder / "run 1.zip"
        seen.append(path)
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a", "b")
        return path, "here it is"

    return make


def test_what_is_made_to_be_taken_away_does_not_stay():
    seen = []
    answer = _giving(a_zip(seen))(Asked(ANNA, {"model": "a-model"}))
    link = answer["save"]
    status, content = served(link)
    assert status == 200 and zipfile.is_zipfile(io.BytesIO(content)) and "Here it" in answer["shows"]["said"]
    assert link.endswith("/run%201.zip") and not seen[0].exists() and not seen[0].parent.exists()
    assert served("made/guess/run.zip") == (404, b"This file is not here any more: make it again.")


def test_a_model_is_exported_or_the_press_says_why_not(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # Transformers takes long to import
    page = page_of(Registry(small_limits(), SHIPPED_FOLDER))
    usual = form.model_config(form.size_values("tiny", "stories") | {"source": "stories"})
    small = usual.replace(vocab_size=6, context_length=8, n_layers=1, d_model=16, n_heads=2)
    able = page.registry.add(ANNA, received(zipped(tmp_path, **small.to_dict()), page))
    export = files(page, lambda *_: None)["transformers"]
    with pytest.raises(ValueError, match="no such architecture"):
        export(ANNA, "shipped-stories", tmp_path / "none")
    taken, _ = export(ANNA, able, tmp_path)
    again, ids = received(taken, page), torch.tensor([[1, 2, 3]])
    torch.testing.assert_close(again.model(ids).logits, page.registry.get(able, ANNA).model(ids).logits)


def test_only_what_was_uploaded_here_is_brought(tmp_path):
    page, folder = page_of(Registry(small_limits(), SHIPPED_FOLDER)), Path(get_upload_folder()) / "takeaway-test"
    folder.mkdir(parents=True, exist_ok=True)
    inside = zipped(folder, "brought.zip")
    answer = bring(page, Asked(ANNA, {"file": {"path": str(inside)}}))
    assert page.registry.has(answer["choose"], ANNA) and not page.registry.has(answer["choose"], BERT)
    assert "is here" in answer["shows"]["brought"]
    for path in (str(zipped(tmp_path)), "/etc/passwd", None, 7):
        with pytest.raises(ValueError, match="it again"):
            bring(page, Asked(ANNA, {"file": {"path": path}}))
