"""The Hub section of "Take it with you": push the chosen model, pull one by its name.

Whose login is used: on a Space the visitor's own (OAuth, with the one scope that lets an app make repositories and
change those it made); elsewhere a token that the visitor types, or the machine's stored login on its owner's page,
where the server was started with --use-hub-login.
"""

from __future__ import annotations

import html
import json
import os
import tempfile
from dataclasses import replace

import gradio as gr

from ....service.hub_page import hub_page
from ....storage import hub
from ... import theme
from ...page import UNSEEN, Page
from ...refusals import in_words
from ...theme import quiet

# for handlers that wait for the network; _waits says in words that they work, where gradio's own marks have no room
_WAITING = {"concurrency_limit": 4, "concurrency_id": "hub", **UNSEEN}


def build(page: Page) -> None:
    """Lay the section out where it is called, and wire it up."""
    on_space = bool(os.environ.get("SPACE_ID"))
    with gr.Column(elem_id="hub"):
        gr.HTML(theme.heading("The Hugging Face Hub", _login_words(on_space)), padding=False)
        if os.environ.get("OAUTH_CLIENT_ID"):  # without it the button would not let the page start
            gr.LoginButton(size="md", elem_id="hub-login")
        name = gr.Textbox(
            label="Push",
            info="The model chosen at the top of the page, with a card and its curve.",
            placeholder="a name of your choice, or user/name",
            max_lines=1,
            max_length=200,
            elem_id="hub-name",
        )
        with gr.Row(elem_classes="hub-buttons"):
            push = gr.Button("Push", size="md", min_width=90, scale=0, elem_id="hub-push")
            private = gr.Checkbox(label="for my eyes only (private)", value=False, min_width=200, container=False)
        typed = gr.Textbox(
            label="Your token",
            info="From the Hub: Settings, Access Tokens. Used for this press only.",
            type="password",
            max_lines=1,
            max_length=200,
            visible=not on_space,
            elem_id="hub-token",
        )
        pushed = gr.HTML(padding=False, elem_id="hub-pushed")
        repo = gr.Textbox(
            label="Pull",
            info="A model by its name, user/name: made with this page, or a small GPT-2, Llama, Mixtral or Qwen3.",
            placeholder="user/name",
            max_lines=1,
            max_length=200,
            elem_id="hub-repo",
        )
        with gr.Row(elem_classes="hub-buttons"):
            pull = gr.Button("Pull", size="md", min_width=90, scale=0, elem_id="hub-pull")
        pulled = gr.HTML(padding=False, elem_id="hub-pulled")

    def push_model(
        visitor: str,
        model_id: str,
        name: str,
        private: bool,
        typed: str,
        request: gr.Request,
        signed_in: gr.OAuthToken | None,
    ) -> str:
        with in_words():
            page.known(visitor)
            checkpoint = page.registry.get(model_id, visitor)
            token = login(request, typed, signed_in)
            if token is False:
                raise ValueError(_SIGN_IN if on_space else _TYPE_A_TOKEN)
            done = hub.push(checkpoint, _named(name), hub_page, token=token, private=bool(private))
        return _said(f"{'Made' if done.created else 'Updated'} ", done.url, done.repo_id)

    def login(request: gr.Request, typed: str, signed_in: gr.OAuthToken | None) -> str | bool | None:
        """The token to use; None is the stored login, False none at all."""
        if signed_in is not None:
            return signed_in.token
        if isinstance(typed, str) and typed.strip() and not on_space:
            return typed.strip()
        return None if page.reach.is_owner(request) and not on_space else False

    def pull_model(
        visitor: str, model_id: str, repo: str, typed: str, request: gr.Request, signed_in: gr.OAuthToken | None
    ) -> tuple:
        with in_words():
            visitor, repo = page.known(visitor), _named(repo).strip()
            token = login(request, typed, signed_in)
            with tempfile.TemporaryDirectory() as temporary:
                # visitors must not fill the Space's disk; one's own machine keeps what it has fetched
                cache = temporary if on_space else None
                checkpoint = hub.pull(
                    repo, token=token, cache=cache, max_parameters=page.limits.parameters, check=page.limits.check_model
                )
            named = replace(checkpoint, name=repo)  # so that lists tell it from others
            new_id = page.registry.add(visitor, named, share=page.share_of(request))
        loss = checkpoint.history.val_loss
        quality = f", validation loss {loss:.4f}" if loss is not None else ""
        words = f"{repo} is here: {checkpoint.config.n_parameters:,} parameters{quality}. All tabs show it."
        return page.model_list(visitor, new_id), quiet(words)

    chosen = [page.visitor, page.model]
    _waits(push, pushed, "Sending it to the Hub …")
    push.click(push_model, [*chosen, name, private, typed], pushed, **_WAITING).failure(None, None, pushed, js=_NOTHING)
    _waits(pull, pulled, "Fetching it from the Hub …")
    pull.click(pull_model, [*chosen, repo, typed], [page.model, pulled], **_WAITING).failure(
        None, None, pulled, js=_NOTHING
    )
    page.model.change(None, None, pushed, js=_NOTHING, **UNSEEN)


_NOTHING = "() => ''"
_SIGN_IN = "Sign in with Hugging Face first, so that the model goes to your own account."
_TYPE_A_TOKEN = "Type a token of your own first. Is this your server? Start it with --use-hub-login to use its login."


def _waits(button: gr.Button, said: gr.HTML, words: str) -> None:
    """Let a click write at once, in the browser, that something has begun."""
    button.click(None, None, said, js=f"() => {json.dumps(quiet(words))}")


def _named(name: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise ValueError("Type a repository's name first, such as anna/tales.")
    if len(name) > 200:
        raise ValueError("That is too long for a repository's name: write it as user/name.")
    return name


def _login_words(on_space: bool) -> str:
    if on_space:
        return (
            "Sign in to push to your own account. This page may then make repositories there and change those it "
            "made, nothing else."
        )
    return "Pushing needs a token of yours. Pulling public models needs none."


def _said(before: str, url: str, name: str) -> str:
    link = f'<a href="{html.escape(url, quote=True)}" target="_blank" rel="noopener">{html.escape(name)}</a>'
    return f'<p class="quiet-line">{before}{link}, with its card and its curve.</p>'
