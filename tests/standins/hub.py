"""A Hugging Face Hub on loopback, as far as huggingface_hub asks: accounts, repositories, commits, large files, Spaces.

    def test_a_repository_is_empty_at_first(hub):
        HfApi().create_repo("anna/tales", token=ANNAS)
        assert hub.repo("anna/tales").files == {}            # {path: bytes}

The requests and answers are those that huggingface_hub 2.4 sends and reads. Xet is not spoken: the fixture `hub`
switches it off, so that large files travel by the older LFS protocol. Jobs are in `jobs.py`.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from typing import Any

import pytest

from .jobs import Jobs
from .repos import SDKS, Account, Refused, Repo, card_errors, front_matter, sibling
from .requests import handler_for

__all__ = ["ANNAS", "BERTS", "Account", "StandInHub", "card_errors", "front_matter", "hub", "signed_in"]

ANNAS, BERTS = "hf_annasSecret", "hf_bertsSecret"
KINDS = {"model": "", "dataset": "datasets/", "space": "spaces/"}


class StandInHub:
    """The server and all it knows. A context manager; `log` lists what was asked, without bodies."""

    def __init__(self) -> None:
        self.accounts = {ANNAS: Account("anna"), BERTS: Account("bert")}
        self.repos: dict[tuple[str, str], Repo] = {}
        self.large: dict[str, bytes] = {}
        self.log: list[str] = []
        self.jobs = Jobs()
        self.down: int | None = None
        """Answer everything with this status, if set."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler_for(self))
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> StandInHub:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Answer no more: whoever asks finds nobody there."""
        self._server.shutdown()
        self._server.server_close()

    def add(self, repo_id: str, files: dict[str, bytes] | None = None, *, kind: str = "model", **settings: Any) -> Repo:
        """Put a repository there without any request."""
        self.repos[kind, repo_id] = repo = Repo(repo_id, kind, files=dict(files or {}), **settings)
        return repo

    def repo(self, repo_id: str, kind: str = "model") -> Repo:
        """A repository; KeyError where there is none."""
        return self.repos[kind, repo_id]

    # ---- what a request may see ------------------------------------------------------------------------------------

    def account(self, token: str | None) -> Account | None:
        """Who asks; None without a token. Refuses a token that nobody has."""
        if token is None:
            return None
        if token not in self.accounts:
            raise Refused(401, "Invalid credentials in Authorization header")
        return self.accounts[token]

    def readable(self, kind: str, repo_id: str, who: Account | None, *, content: bool = False) -> Repo:
        """The repository, if this account may read it (`content`: its files too)."""
        repo, mine = self.repos.get((kind, repo_id)), who is not None and repo_id.split("/")[0] == who.name
        if repo is None or (repo.private and not mine):
            raise Refused(404 if who else 401, "Repository not found", "RepoNotFound")
        if repo.gated and content and not mine:
            raise Refused(403 if who else 401, f"Access to model {repo_id} is restricted.", "GatedRepo")
        return repo

    def writable(self, kind: str, repo_id: str, who: Account | None) -> Repo:
        """The repository, if this account may change it."""
        repo = self.readable(kind, repo_id, who)
        if who is None or repo_id.split("/")[0] != who.name:
            raise Refused(403, "Forbidden: you don't have the required permissions")
        return repo

    # ---- what requests do ------------------------------------------------------------------------------------------

    def create(self, who: Account | None, asked: dict[str, Any]) -> dict[str, Any]:
        """POST /api/repos/create."""
        if who is None:
            raise Refused(401, "Invalid username or password.")
        owner, kind = asked.get("organization") or who.name, asked.get("type") or "model"
        repo_id = f"{owner}/{asked['name']}"
        if owner != who.name or not who.may_create:
            raise Refused(403, f'You don\'t have the rights to create a {kind} under the namespace "{owner}"')
        if (kind, repo_id) in self.repos:
            raise Refused(409, "You already created this repo", url=f"{self.address}/{KINDS[kind]}{repo_id}")
        settings = {k: v for k, v in asked.items() if k not in ("name", "organization", "type", "visibility")}
        if kind == "space" and settings.get("sdk") not in SDKS:
            raise Refused(400, "a Space needs an sdk")
        flavor = settings.get("hardware", "cpu-basic")
        if flavor != "cpu-basic" and not who.pays:
            raise Refused(402, "Payment required")
        repo = self.add(repo_id, kind=kind, private=asked.get("visibility") == "private", settings=settings)
        repo.requested, repo.sleep_seconds = settings.get("hardware"), settings.get("sleepTimeSeconds")
        return {"url": f"{self.address}/{KINDS[kind]}{repo_id}", "name": repo_id, "id": "1" * 24}

    def commit(self, repo: Repo, lines: list[dict[str, Any]]) -> dict[str, Any]:
        """POST /api/…/commit/…: one line of JSON per change, a header first."""
        header, *changes = lines
        files = dict(repo.files)
        for change in changes:
            value = change["value"]
            if change["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif change["key"] == "lfsFile":
                files[value["path"]] = self.large[value["oid"]]
            elif change["key"] == "deletedFile":
                del files[value["path"]]
            else:
                raise Refused(400, f"unknown change {change['key']}")
        repo.files = files
        repo.commits.append(header["value"]["summary"])
        return {
            "success": True,
            "commitOid": repo.commit,
            "commitUrl": f"{self.address}/{KINDS[repo.kind]}{repo.id}/commit/{repo.commit}",
        }

    def info(self, repo: Repo) -> dict[str, Any]:
        """GET /api/models/…"""
        card = front_matter(repo.files.get("README.md", b"").decode())
        return {
            "id": repo.id,
            "sha": repo.commit,
            "private": repo.private,
            "gated": "manual" if repo.gated else False,
            "tags": card.get("tags") or [],
            "library_name": card.get("library_name"),
            "siblings": [sibling(path, data) for path, data in sorted(repo.files.items())],
        }

    def runtime(self, repo: Repo) -> dict[str, Any]:
        """GET /api/spaces/…/runtime, of a Space that is being built."""
        return {
            "stage": "BUILDING",
            "sha": repo.commit,
            "hardware": {"current": "cpu-basic", "requested": repo.requested},
            "gcTimeout": repo.sleep_seconds,
        }


@pytest.fixture
def hub(monkeypatch, tmp_path) -> Iterator[StandInHub]:
    """A stand-in that all of huggingface_hub talks to, with an empty cache, no stored login, and no Xet."""
    from huggingface_hub import constants

    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_OIDC_RESOURCE"):
        monkeypatch.delenv(name, raising=False)
    with StandInHub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)  # for processes that a test starts
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf-home"))
        monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
        monkeypatch.setattr(constants, "ENDPOINT", hub.address)
        template = hub.address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hf-cache"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "hf-home" / "token"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        yield hub


@pytest.fixture
def signed_in(hub, monkeypatch) -> None:
    """The machine's stored login is Anna's."""
    monkeypatch.setenv("HF_TOKEN", ANNAS)
