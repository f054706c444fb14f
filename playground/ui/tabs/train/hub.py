"""The Hub section of "Take it with you": push the chosen model, pull one by its name.

Whose login is used: on a Space the visitor's own (OAuth, with the one scope that lets an app make repositories and
change those it made); elsewhere a token that the visitor types, or the machine's stored login on its owner's page,
where the server was started with --use-hub-login.
"""

from __future__ import annotations

import html
import os
import tempfile
from dataclasses import replace
from typing import Any

import gradio as gr
from gradio.helpers import special_args
from starlette.requests import Request

from ....service.hub_page import hub_page
from ....storage import hub
from ... import theme
from ...page import Page
from ...panel import Asked, Shown, Slot, slot
from ...selected import Selected

_NAME = 'type="text" autocomplete="off" spellcheck="false" maxlength="200"'
_TOKEN = """<label class="field">Your token <input type="password" data-field="token" maxlength="200" id="hub-token"
autocomplete="off" placeholder="from the Hub: Settings, Access Tokens; used for this press only"></label>"""
TEMPLATE = f"""<fieldset class="stack">
<div class="line"><input {_NAME} data-field="name" id="hub-name" class="grow" aria-label="Name to push it under"
placeholder="a name of your choice, or user/name"><label class="check"><input type="checkbox"
data-field="private">private</label><button type="button" class="ghost" id="hub-push" data-do="hub_push"
data-waits="Sending it to the Hub …">Push</button></div>TOKEN
<div class="line"><input {_NAME} data-field="repo" id="hub-repo" class="grow" aria-label="Name of the model to pull"
placeholder="user/name: made with this page, or a small GPT-2, Llama, Mixtral or Qwen3"><button type="button"
class="ghost" id="hub-pull" data-do="hub_pull" data-waits="Fetching it from the Hub …">Pull</button></div></fieldset>
{slot("said", id="hub-said")}{slot("problem", tag="p", class_="notice notice-error", role="alert")}"""


class Selection(Selected):
    """What the browser keeps of the section."""

    model: str = ""
    said: str = ""
    """What was sent or fetched last."""
    link: str = ""
    """Where it is."""


def build(page: Page) -> Hub:
    """Lay the section out where it is called, and wire it up."""
    on_space, does = bool(os.environ.get("SPACE_ID")), Hub(page)
    gr.HTML(theme.heading("The Hugging Face Hub", _login_words(on_space)), padding=False)
    if os.environ.get("OAUTH_CLIENT_ID"):  # without it the button would not let the page start
        gr.LoginButton(size="md", elem_id="hub-login")
    template = TEMPLATE.replace("TOKEN", "" if on_space else _TOKEN)
    page.panels.add("hub", show, template, start=Selection().to_dict(), of_model="said link", elem_id="hub")
    page.panels.act("hub_push", does.push, slow=True)
    page.panels.act("hub_pull", does.pull, slow=True)
    return does


def show(asked: Asked) -> Shown:
    """What was sent or fetched last."""
    chosen = Selection.read(asked.selection)
    return Shown(chosen.to_dict(), {"said": Slot((chosen.said, chosen.link), lambda: _said(chosen))})


class Hub:
    """What the section's buttons do."""

    def __init__(self, page: Page):
        self.page, self.on_space = page, bool(os.environ.get("SPACE_ID"))

    def push(self, asked: Asked) -> dict[str, Any]:
        """Press Push."""
        given = asked.selection
        words, link = self.push_model(
            asked.visitor, given.get("model"), given.get("name"), given.get("private") is True, given.get("token"),
            asked.request, signed_in(asked.request),
        )  # fmt: skip
        return {"move": {"said": words, "link": link}}

    def pull(self, asked: Asked) -> dict[str, Any]:
        """Press Pull: the model is chosen on all tabs."""
        given, token = asked.selection, signed_in(asked.request)
        model_id, words = self.pull_model(asked.visitor, given.get("repo"), given.get("token"), asked.request, token)
        return {"choose": model_id, "move": {"said": words, "link": ""}}

    def push_model(
        self, visitor: str, model_id: Any, name: Any, private: bool, typed: Any, request: Any,
        signed: gr.OAuthToken | None,
    ) -> tuple[str, str]:  # fmt: skip
        """Send the model; what is said of it, and where it is. Raises ValueError."""
        checkpoint = self.page.registry.get(model_id, visitor)
        token = self.login(request, typed, signed)
        if token is False:
            raise ValueError(_SIGN_IN if self.on_space else _TYPE_A_TOKEN)
        done = hub.push(checkpoint, _named(name), hub_page, token=token, private=private)
        return f"{'Made' if done.created else 'Updated'} {done.repo_id}, with its card and its curve.", done.url

    def pull_model(
        self, visitor: str, repo: Any, typed: Any, request: Any, signed: gr.OAuthToken | None
    ) -> tuple[str, str]:
        """Fetch a model; its id, and what is said of it. Raises ValueError."""
        page, repo = self.page, _named(repo).strip()
        token = self.login(request, typed, signed)
        with tempfile.TemporaryDirectory() as temporary:
            # visitors must not fill the Space's disk; one's own machine keeps what it has fetched
            cache = temporary if self.on_space else None
            checkpoint = hub.pull(
                repo, token=token, cache=cache, max_parameters=page.limits.parameters, check=page.limits.check_model
            )
        named = replace(checkpoint, name=repo)  # so that lists tell it from others
        new_id = page.registry.add(visitor, named, share=page.share_of(request, visitor))
        loss = checkpoint.history.val_loss
        quality = f", validation loss {loss:.4f}" if loss is not None else ""
        return new_id, f"{repo} is here: {checkpoint.config.n_parameters:,} parameters{quality}. All tabs show it."

    def login(self, request: Any, typed: Any, signed: gr.OAuthToken | None) -> str | bool | None:
        """The token to use; None is the stored login, False none at all."""
        if signed is not None:
            return signed.token
        if isinstance(typed, str) and typed.strip() and not self.on_space:
            return typed.strip()
        return None if self.page.reach.is_owner(request) and not self.on_space else False


def signed_in(request: Request) -> gr.OAuthToken | None:
    """The login of whoever has pressed the sign-in button; None for everybody else."""

    def wants(token: gr.OAuthToken | None) -> None:
        """Gradio gives it to a handler that names it."""

    return special_args(wants, [], request)[0][0]


_SIGN_IN = "Sign in with Hugging Face first, so that the model goes to your own account."
_TYPE_A_TOKEN = "Type a token of your own first. Is this your server? Start it with --use-hub-login to use its login."


def _named(name: Any) -> str:
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


def _said(chosen: Selection) -> str:
    if not chosen.link.startswith("https://") and not chosen.link.startswith("http://"):
        return chosen.said and theme.quiet(chosen.said)
    link = html.escape(chosen.link, quote=True)
    return (
        f'<p class="quiet-line">{html.escape(chosen.said)} <a href="{link}" target="_blank" rel="noopener">Open it</a>'
        "</p>"
    )
