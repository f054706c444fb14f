"""A Hugging Face Hub on loopback, as far as huggingface_hub asks: accounts, repositories, commits, large files, Spaces.

    with StandInHub() as hub:
        hub.accounts["hf_annas"] = Account("anna")
        HfApi(endpoint=hub.address).create_repo("anna/tales", token="hf_annas")
        hub.repo("anna/tales").files            # {path: bytes}

The requests and answers are those that huggingface_hub 2.4 sends and reads. Xet is not spoken: `hub_for_tests` switches
it off, so that large files travel by the older LFS protocol. Jobs are in `jobs.py`.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

from .jobs import Jobs

KINDS = {"model": "", "dataset": "datasets/", "space": "spaces/"}
LARGE = (".safetensors", ".bin", ".png", ".zip")  # what the Hub's .gitattributes sends to large-file storage
COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
SDKS = {"gradio", "docker", "static"}


@dataclass
class Account:
    """Whom a token belongs to, and what it may do."""

    name: str
    may_create: bool = True
    """Whether the token may create repositories in its owner's name."""
    may_write: bool = True
    """Whether it may commit to them."""
    pays: bool = True
    """Whether paid hardware can be had."""


@dataclass
class Repo:
    """One repository, all its commits on `main`."""

    id: str
    kind: str
    private: bool = False
    gated: bool = False
    files: dict[str, bytes] = field(default_factory=dict)
    commits: list[str] = field(default_factory=list)
    """Summaries, the oldest first."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What a Space was created with."""
    hardware: str = "cpu-basic"
    requested: str | None = None
    sleep_seconds: int | None = None
    stages: list[str] = field(default_factory=lambda: ["BUILDING", "BUILDING", "RUNNING"])
    """What a Space's runtime answers, one after the other; the last one stays."""
    running: str | None = None
    """The commit that a Space runs: the newest, once it has been built."""
    error: str | None = None
    """A Space's error message, where it has one."""

    @property
    def commit(self) -> str:
        """The hash of the newest commit."""
        content = "".join(f"{path}{_git_hash(data)}" for path, data in sorted(self.files.items()))
        return hashlib.sha1(f"{self.id}{len(self.commits)}{content}".encode()).hexdigest()

    @property
    def front_matter(self) -> dict[str, Any]:
        """What README.md says between its first two lines of dashes."""
        return front_matter(self.files.get("README.md", b"").decode())


class Refused(Exception):
    """An answer that is not 200."""

    def __init__(self, status: int, message: str, code: str | None = None, **body: str):
        super().__init__(message)
        self.status, self.message, self.code, self.body = status, message, code, body


class StandInHub:
    """The server and all it knows. A context manager; `log` lists what was asked, without bodies."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}
        self.repos: dict[tuple[str, str], Repo] = {}
        self.large: dict[str, bytes] = {}
        self.log: list[str] = []
        self.jobs = Jobs()
        self.down: int | None = None
        """Answer everything with this status, if set."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
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
        if who is None:
            raise Refused(401, "Invalid username or password.")
        if repo_id.split("/")[0] != who.name or not who.may_write:
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
            elif change["key"] == "deletedFolder":
                files = {p: data for p, data in files.items() if not p.startswith(value["path"].rstrip("/") + "/")}
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
        card = repo.front_matter
        return {
            "id": repo.id,
            "sha": repo.commit,
            "private": repo.private,
            "gated": "manual" if repo.gated else False,
            "tags": card.get("tags") or [],
            "library_name": card.get("library_name"),
            "pipeline_tag": card.get("pipeline_tag"),
            "siblings": [_sibling(path, data) for path, data in sorted(repo.files.items())],
        }

    def runtime(self, repo: Repo, *, look: bool = True) -> dict[str, Any]:
        """GET /api/spaces/…/runtime: each look takes the Space one stage further."""
        stage = repo.stages.pop(0) if look and len(repo.stages) > 1 else repo.stages[0]
        if "BUILDING" in stage or repo.running is None:
            repo.running = repo.commit
        if stage == "RUNNING" and repo.requested:
            repo.hardware = repo.requested
        return {
            "stage": stage,
            "sha": repo.running,
            "hardware": {"current": repo.hardware, "requested": repo.requested},
            "gcTimeout": repo.sleep_seconds,
            **({"errorMessage": repo.error} if repo.error and stage.endswith("ERROR") else {}),
        }


def _handler(hub: StandInHub) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        pass

    Handler.hub = hub
    return Handler


class _Handler(BaseHTTPRequestHandler):
    """Takes requests apart and answers them."""

    hub: StandInHub
    protocol_version = "HTTP/1.1"
    _kind_and_id = r"/api/(models|datasets|spaces)/([^/]+/[^/]+)"

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = urlsplit(self.path)
        path, query = unquote(parts.path), parse_qs(parts.query)
        self.hub.log.append(f"{self.command} {path}")
        try:
            if self.hub.down:
                raise Refused(self.hub.down, "out of order")
            token = (self.headers.get("authorization") or "").removeprefix("Bearer ") or None
            self._route(path, query, body, self.hub.account(token))
        except Refused as refused:
            headers = {"x-error-message": refused.message}
            if refused.code:
                headers["x-error-code"] = refused.code
            self._json({"error": refused.message, **refused.body}, refused.status, headers)

    do_GET = do_HEAD = do_POST = do_PUT = _serve

    def _route(self, path: str, query: dict, body: bytes, who: Account | None) -> None:
        hub = self.hub
        if path == "/api/whoami-v2":
            if who is None:
                raise Refused(401, "Invalid credentials in Authorization header")
            return self._json({"type": "user", "name": who.name, "fullname": who.name.title(), "orgs": []})
        if path == "/api/repos/create":
            return self._json(hub.create(who, json.loads(body)))
        if path == "/api/validate-yaml":
            asked = json.loads(body)
            errors = card_errors(asked["content"], asked["repoType"])
            return self._json({"errors": [{"message": e} for e in errors], "warnings": []}, 400 if errors else 200)
        if path == "/api/models":
            wanted = {tag for value in query.get("filter", []) for tag in value.split(",")}
            found = [hub.info(r) for r in hub.repos.values() if r.kind == "model" and not r.private]
            return self._json([f for f in found if wanted <= set(f["tags"]) | {f["library_name"]}])
        if path.startswith("/api/jobs/"):
            return hub.jobs.answer(self, path.removeprefix("/api/jobs/"), query, body, who)
        if path.startswith("/large/"):
            hub.large[path.removeprefix("/large/")] = body
            return self._answer(b"", {}, 200)
        if found := re.fullmatch(r"/(datasets/|spaces/|)([^/]+/[^/]+)\.git/info/lfs/objects/batch", path):
            repo = hub.writable(_kind(found[1] or "models/"), found[2], who)
            return self._json({"transfer": "basic", "objects": [self._place(o) for o in json.loads(body)["objects"]]})
        if found := re.fullmatch(r"/(datasets/|spaces/|)([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            repo = hub.readable(_kind(found[1] or "models/"), found[2], who, content=True)
            return self._file(repo, found[4])
        if found := re.fullmatch(self._kind_and_id + r"(?:/(.*))?", path):
            return self._repository(_kind(found[1] + "/"), found[2], found[3] or "", body, who)
        raise Refused(404, f"the stand-in knows no {path}")

    def _repository(self, kind: str, repo_id: str, rest: str, body: bytes, who: Account | None) -> None:
        hub, (verb, *_) = self.hub, rest.split("/")
        if verb == "preupload":
            repo = hub.writable(kind, repo_id, who)
            return self._json({"files": [self._mode(repo, f) for f in json.loads(body)["files"]]})
        if verb == "commit":
            repo = hub.writable(kind, repo_id, who)
            return self._json(hub.commit(repo, [json.loads(line) for line in body.splitlines()]))
        if verb in ("hardware", "sleeptime") and kind == "space":
            repo, asked = hub.writable(kind, repo_id, who), json.loads(body)
            if verb == "hardware" and asked["flavor"] != "cpu-basic" and not who.pays:
                raise Refused(402, "Payment required")
            repo.requested = asked.get("flavor", repo.requested)
            repo.sleep_seconds = asked.get("sleepTimeSeconds", asked.get("seconds", repo.sleep_seconds))
            return self._json(hub.runtime(repo, look=False))
        repo = hub.readable(kind, repo_id, who, content=verb == "tree")
        if verb == "runtime" and kind == "space":
            return self._json(hub.runtime(repo))
        if verb == "tree":
            return self._json([_entry(path, data) for path, data in sorted(repo.files.items())])
        if verb == "paths-info":
            wanted = parse_qs(body.decode())["paths"]
            return self._json([_entry(p, repo.files[p]) for p in wanted if p in repo.files])
        if verb in ("", "revision"):
            return self._json(hub.info(repo))
        raise Refused(404, f"the stand-in knows no {verb} of a {kind}")

    def _mode(self, repo: Repo, asked: dict[str, Any]) -> dict[str, Any]:
        large, known = asked["path"].endswith(LARGE), repo.files.get(asked["path"])
        entry = {"path": asked["path"], "uploadMode": "lfs" if large else "regular", "shouldIgnore": False}
        if known is not None:
            entry["oid"] = hashlib.sha256(known).hexdigest() if large else _git_hash(known)
        return entry

    def _place(self, asked: dict[str, Any]) -> dict[str, Any]:
        placed = {"oid": asked["oid"], "size": asked["size"]}
        if asked["oid"] in self.hub.large:
            return placed
        return {**placed, "actions": {"upload": {"href": f"{self.hub.address}/large/{asked['oid']}"}}}

    def _file(self, repo: Repo, path: str) -> None:
        if path not in repo.files:
            raise Refused(404, "Entry not found", "EntryNotFound")
        data = repo.files[path]
        headers = {"etag": f'"{_git_hash(data)}"', "x-repo-commit": repo.commit}
        if path.endswith(LARGE):
            headers |= {"x-linked-etag": f'"{hashlib.sha256(data).hexdigest()}"', "x-linked-size": str(len(data))}
        self._answer(data, headers, 200)

    def _json(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self._answer(json.dumps(value).encode(), {"content-type": "application/json", **(headers or {})}, status)

    def _answer(self, body: bytes, headers: dict[str, str], status: int) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


def card_errors(content: str, kind: str) -> list[str]:
    """What the Hub would refuse about a README.md, as far as its documentation says."""
    try:
        card = front_matter(content)
    except yaml.YAMLError as problem:
        return [f"the front matter is not YAML: {problem}"]
    errors = []
    if kind == "space":
        if card.get("sdk") not in SDKS:
            errors.append('"sdk" must be one of gradio, docker, static')
        for colour in ("colorFrom", "colorTo"):
            if colour in card and card[colour] not in COLOURS:
                errors.append(f'"{colour}" must be one of {", ".join(sorted(COLOURS))}')
        if len(str(card.get("short_description", ""))) > 60:
            errors.append('"short_description" length must be less than or equal to 60 characters long')
    for name in ("tags", "models", "datasets", "hf_oauth_scopes", "preload_from_hub"):
        if name in card and not (isinstance(card[name], list) and all(isinstance(v, str) for v in card[name])):
            errors.append(f'"{name}" must be a list of strings')
    return errors


def front_matter(content: str) -> dict[str, Any]:
    """The YAML between the first two lines of dashes; {} where there is none."""
    found = re.match(r"---\n(.*?)\n---\n", content, re.DOTALL)
    return (yaml.safe_load(found[1]) or {}) if found else {}


def _kind(prefix: str) -> str:
    return prefix.removesuffix("/").removesuffix("s")


def _entry(path: str, data: bytes) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "file", "path": path, "size": len(data), "oid": _git_hash(data)}
    if path.endswith(LARGE):
        entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
    return entry


def _sibling(path: str, data: bytes) -> dict[str, Any]:
    entry = _entry(path, data)
    lfs = {"lfs": {"sha256": entry["lfs"]["oid"], "size": len(data), "pointerSize": 134}} if "lfs" in entry else {}
    return {"rfilename": path, "size": len(data), "blobId": entry["oid"], **lfs}


def _git_hash(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


@contextlib.contextmanager
def hub_for_tests(monkeypatch, tmp_path) -> Iterator[StandInHub]:
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
