"""The stand-in Hub's requests: taken apart, answered in the words that huggingface_hub 2.4 reads."""

from __future__ import annotations

import hashlib
import json
import re
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from .repos import LARGE, Account, Refused, Repo, card_errors, entry, git_hash

if TYPE_CHECKING:
    from .hub import StandInHub


def handler_for(hub: StandInHub) -> type[BaseHTTPRequestHandler]:
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
            repo.requested = asked.get("flavor", repo.requested)
            repo.sleep_seconds = asked.get("sleepTimeSeconds", asked.get("seconds", repo.sleep_seconds))
            return self._json(hub.runtime(repo))
        repo = hub.readable(kind, repo_id, who, content=verb == "tree")
        if verb == "runtime" and kind == "space":
            return self._json(hub.runtime(repo))
        if verb == "tree":
            return self._json([entry(path, data) for path, data in sorted(repo.files.items())])
        if verb == "paths-info":
            wanted = parse_qs(body.decode())["paths"]
            return self._json([entry(p, repo.files[p]) for p in wanted if p in repo.files])
        if verb in ("", "revision"):
            return self._json(hub.info(repo))
        raise Refused(404, f"the stand-in knows no {verb} of a {kind}")

    def _mode(self, repo: Repo, asked: dict[str, Any]) -> dict[str, Any]:
        large, known = asked["path"].endswith(LARGE), repo.files.get(asked["path"])
        entry = {"path": asked["path"], "uploadMode": "lfs" if large else "regular", "shouldIgnore": False}
        if known is not None:
            entry["oid"] = hashlib.sha256(known).hexdigest() if large else git_hash(known)
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
        headers = {"etag": f'"{git_hash(data)}"', "x-repo-commit": repo.commit}
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


def _kind(prefix: str) -> str:
    return prefix.removesuffix("/").removesuffix("s")
