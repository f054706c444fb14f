"""The Hub section of "Take it with you": push the chosen model, pull one by its name.

The login: on a Space the visitor's own (OAuth, with the one scope that lets an app make repositories and change those
it made). Elsewhere it is a token that the visitor types.
"""

from __future__ import annotations

import html
import os
import tempfile
import time
from dataclasses import replace
from typing import Any

import gradio as gr

from ....service.hub_page import hub_page
from ....storage import hub
from ... import theme
from ...page import Page
from ...panel import Asked, attributes_html, deed_button, slot
from ...theme import quiet

LONGEST = 200
"""Most characters in a name, or in a token."""


def on_space() -> bool:
    """Whether the page runs on a Space, where visitors have their own logins."""
    return bool(os.environ.get("SPACE_ID"))


def template() -> str:
    """The section's template. Its fields are not part of the selection."""
    token = "" if on_space() else _field("token", "Your token", "", type="password", autocomplete="off")
    note = "" if on_space() else quiet("From the Hub: Settings, Access Tokens. Used once, not stored.")
    return (
        f'<fieldset class="stack" id="hub">{theme.heading("The Hugging Face Hub", _login_words())}'
        f'<div class="line">{_field("name", "Push", "a name of your choice, or user/name")}'
        '<label class="check"><input type="checkbox" data-field="private">private</label>'
        f"{_button('push', 'Push', 'Sending …')}</div>{slot('pushed')}{token}{note}"
        f'<div class="line">{_field("repo", "Pull", "user/name")}{_button("pull", "Pull", "Fetching …")}</div>'
        f"{quiet('A model made with this page, or a small GPT-2, Llama, Mixtral or Qwen3.')}{slot('pulled')}</fieldset>"
    )


def _field(name: str, label: str, placeholder: str, **more: str) -> str:
    attributes = {"type": "text", "placeholder": placeholder, "maxlength": str(LONGEST), "spellcheck": "false", **more}
    given = attributes_html({"id": f"hub-{name}", "data-field": name, **attributes})
    return f'<label class="field-label">{label}<input{given}></label>'


def _button(name: str, words: str, waits: str) -> str:
    return deed_button(words, f"hub_{name}", id=f"hub-{name}", data_waits=waits)


def build(page: Page) -> None:
    """Wire up the section's buttons, and the button for signing in if there are logins."""
    if os.environ.get("OAUTH_CLIENT_ID"):  # without it the button would keep the page from starting
        gr.LoginButton(size="md", elem_id="hub-login")
    page.panels.act("hub_push", lambda asked: push(page, asked), slow=True)
    page.panels.act("hub_pull", lambda asked: pull(page, asked), slow=True)


def push(page: Page, asked: Asked) -> dict[str, Any]:
    """Handle a press of Push. Raises ValueError."""
    given = asked.selection
    checkpoint = page.registry.get(given.get("model"), asked.visitor)
    token = login(asked)
    if not token:
        raise ValueError(_SIGN_IN if on_space() else _TYPE_A_TOKEN)
    private = given.get("private") is True
    done = hub.push(checkpoint, _named(given.get("name")), hub_page, token=token, private=private)
    return {"shows": {"pushed": _said("Made " if done.created else "Updated ", done.url, done.repo_id)}}


def pull(page: Page, asked: Asked) -> dict[str, Any]:
    """Handle a press of Pull: the model becomes the visitor's, and is chosen. Raises ValueError."""
    repo, token = _named(asked.selection.get("repo")), login(asked) or False
    with tempfile.TemporaryDirectory() as temporary:
        # visitors must not fill the Space's disk; a local machine keeps what it has fetched
        cache, limits = temporary if on_space() else None, page.limits
        checkpoint = hub.pull(
            repo, token=token, cache=cache, max_parameters=limits.parameters, check=limits.check_model
        )
    named = replace(checkpoint, name=repo)  # so that it stands out in lists
    model_id = page.registry.add(asked.visitor, named, share=page.share_of(asked.request, asked.visitor))
    loss = checkpoint.history.val_loss
    quality = f", validation loss {loss:.4f}" if loss is not None else ""
    words = f"{repo} is here: {checkpoint.config.n_parameters:,} parameters{quality}. All tabs show it."
    return {"choose": model_id, "shows": {"pulled": quiet(words)}}


def login(asked: Asked) -> str:
    """The visitor's Hub token; empty if there is none."""
    typed = asked.selection.get("token")
    typed = typed.strip()[:LONGEST] if isinstance(typed, str) and not on_space() else ""
    return signed_in(asked.request) or typed


def signed_in(request: Any) -> str:
    """The visitor's token from gr.LoginButton, which keeps it in the session; empty if not signed in."""
    session = getattr(request, "scope", {}).get("session") or {}
    found = session.get("oauth_info") or {}
    ends = found.get("expires_at")
    return found.get("access_token", "") if ends is None or ends > time.time() else ""


_SIGN_IN = "Sign in with Hugging Face first, so that the model goes to your own account."
_TYPE_A_TOKEN = "Type a token of your own first."


def _named(name: Any) -> str:
    return str(name or "").strip()[:LONGEST]


def _login_words() -> str:
    if on_space():
        return (
            "Sign in to push to your own account. This page may then make repositories there and change those it "
            "made, nothing else."
        )
    return "Pushing needs your token. Pulling public models needs none."


def _said(before: str, url: str, name: str) -> str:
    link = f'<a href="{html.escape(url, quote=True)}" target="_blank" rel="noopener">{html.escape(name)}</a>'
    return f'<p class="quiet-line">{before}{link}, with its card and its curve.</p>'
