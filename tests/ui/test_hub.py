"""The page's Hub section: whose login is used for whom, and what comes and goes; against the stand-in Hub."""

from __future__ import annotations

from types import SimpleNamespace

import gradio as gr
import pytest

from playground.service.board import Board
from playground.service.models import SHIPPED_FOLDER, Registry
from playground.ui.page import Page, model_dropdown
from playground.ui.tabs.train.hub import build
from playground.ui.where import at_home, is_loopback
from tests.standins.hub import Account, hub_for_tests

from .runs import ANNA, BERT, small_limits

OWNER, VISITOR = "hf_ownersSecret", "hf_oauth_visitorsSecret"


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """The machine's stored login is the owner's."""
    with hub_for_tests(monkeypatch, tmp_path) as hub:
        hub.accounts |= {OWNER: Account("owner"), VISITOR: Account("visitor")}
        monkeypatch.setenv("HF_TOKEN", OWNER)
        yield hub


def asked(host="127.0.0.1:7860", client="127.0.0.1", **headers) -> SimpleNamespace:
    """A request as gradio shows it to handlers."""
    return SimpleNamespace(headers={"host": host, **headers}, client=SimpleNamespace(host=client))


def section(**limits):
    """A page of nothing but the Hub section, and its handlers by name."""
    bounds = small_limits(**limits)
    registry = Registry(bounds, SHIPPED_FOLDER)
    with gr.Blocks() as app:
        visitor, model = gr.BrowserState(""), model_dropdown(registry, label="Model")
        page = Page(bounds, registry, Board(registry, bounds), visitor, model, gr.Tabs())
        build(page)
    app.page = page
    return app, {f.name: f.fn for f in app.fns.values()}


SIGNED_IN = gr.OAuthToken(token=VISITOR, scope="contribute-repos", expires_at=0)


def test_a_model_goes_to_the_hub_and_comes_back_to_whoever_pulls_it(hub):
    app, do = section()
    said = do["push_model"](ANNA, "shipped-sentences", " words ", True, asked(), None)
    assert f'href="{hub.address}/owner/words"' in said and said.startswith('<p class="quiet-line">Made')
    assert hub.repo("owner/words").private
    chosen, words = do["pull_model"](BERT, None, "owner/words", asked(), None)
    registry = app.page.registry
    assert registry.get(chosen.value, BERT).name == "owner/words" and "owner/words is here" in words
    assert not registry.has(chosen.value, ANNA)
    hub.repo("owner/words").private = False
    assert [model for model, _ in do["look_around"]()[0].choices] == ["owner/words"]


def test_on_a_space_everybody_has_but_their_own_login(hub, monkeypatch):
    _, do = section()
    do["push_model"](ANNA, "shipped-sentences", "secret", True, asked(), None)
    monkeypatch.setenv("SPACE_ID", "owner/space")
    with pytest.raises(gr.Error, match="Sign in with Hugging Face first"):
        do["push_model"](ANNA, "shipped-sentences", "words", False, asked(), None)
    with pytest.raises(gr.Error, match="it is private: sign in first"):
        do["pull_model"](ANNA, None, "owner/secret", asked(), None)
    assert "visitor/words" in do["push_model"](ANNA, "shipped-sentences", "words", False, asked(), SIGNED_IN)
    with pytest.raises(gr.Error, match="may not do that to owner/words") as refused:
        do["push_model"](ANNA, "shipped-sentences", "owner/words", False, asked(), SIGNED_IN)
    assert VISITOR not in str(refused.value)


@pytest.mark.parametrize(
    ("request_", "home"),
    [
        (asked(), True),
        (asked("localhost:7860"), True),
        (asked("[::1]:7860", "::1"), True),
        (asked("192.168.0.7:7860", "192.168.0.9"), False),
        (asked("127.0.0.1:7860", "192.168.0.9"), False),
        (asked("abc.gradio.live"), False),
        (asked("evil.example:7860"), False),
        (asked("localhost.evil.example"), False),
        (asked(**{"x-forwarded-for": "1.2.3.4"}), False),
        (asked(""), False),
    ],
)
def test_the_stored_login_is_for_whoever_sits_at_the_machine(hub, request_, home):
    assert at_home(request_) is home


def test_a_server_that_others_can_reach_is_known_by_its_address():
    assert all(map(is_loopback, ("127.0.0.1", "localhost", "::1", "127.8.8.8")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.1.7", "my-machine", "localhost.evil.example", "")))


def test_a_shared_page_lends_nobody_its_owners_login(hub):
    _, do = section()
    with pytest.raises(gr.Error, match="Only whoever sits at the server's own machine"):
        do["push_model"](ANNA, "shipped-sentences", "words", False, asked("abc.gradio.live"), None)
    hub.add("owner/secret", {}, private=True)
    with pytest.raises(gr.Error, match="it is private"):
        do["pull_model"](ANNA, None, "owner/secret", asked("abc.gradio.live"), None)


def test_names_that_lead_nowhere_are_sentences(hub):
    _, do = section()
    sentences = {
        "": "Type a repository's name first",
        None: "Type a repository's name",
        "x" * 300: "too long",
        "no/such": "There is no no/such",
        "../../etc": "is not a repository's name",
    }
    for name, sentence in sentences.items():
        with pytest.raises(gr.Error, match=sentence):
            do["pull_model"](ANNA, None, name, asked(), None)


def test_a_model_beyond_the_limits_stays_where_it_is(hub):
    _, do = section()
    do["push_model"](ANNA, "shipped-sentences", "words", False, asked(), None)
    app, do = section(layers=1)
    with pytest.raises(gr.Error, match="layers are too many"):
        do["pull_model"](ANNA, None, "owner/words", asked(), None)
    assert not [entry for entry in app.page.registry.models(ANNA) if not entry.shipped]


def test_the_sign_in_button_is_only_where_it_works(hub, monkeypatch):
    def buttons(app):
        return [block for block in app.blocks.values() if isinstance(block, gr.LoginButton)]

    assert not buttons(section()[0])
    monkeypatch.setenv("OAUTH_CLIENT_ID", "an-id")
    monkeypatch.setattr("gradio.routes.attach_oauth", lambda app: None)  # needs what only a Space installs
    assert len(buttons(section()[0])) == 1
