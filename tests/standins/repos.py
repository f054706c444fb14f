"""What the stand-in Hub keeps: accounts, repositories, and what it would refuse about a card."""

import hashlib
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
LARGE = (".safetensors", ".bin", ".png", ".zip")  # what the Hub's .gitattributes sends to large-file storage
SDKS = {"gradio", "docker", "static"}


@dataclass
class Account:
    """Whom a token belongs to, and what it may do."""

    name: str
    may_create: bool = True
    """Whether the token may create repositories in its owner's name."""
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
    requested: str | None = None
    sleep_seconds: int | None = None

    @property
    def commit(self) -> str:
        """The hash of the newest commit."""
        content = "".join(f"{path}{git_hash(data)}" for path, data in sorted(self.files.items()))
        return hashlib.sha1(f"{self.id}{len(self.commits)}{content}".encode()).hexdigest()


class Refused(Exception):
    """An answer that is not 200."""

    def __init__(self, status: int, message: str, code: str | None = None, **body: str):
        super().__init__(message)
        self.status, self.message, self.code, self.body = status, message, code, body


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


def entry(path: str, data: bytes) -> dict[str, Any]:
    """A file in a listing."""
    info: dict[str, Any] = {"type": "file", "path": path, "size": len(data), "oid": git_hash(data)}
    if path.endswith(LARGE):
        info["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
    return info


def sibling(path: str, data: bytes) -> dict[str, Any]:
    """A file as a repository's info lists it."""
    info = entry(path, data)
    lfs = {"lfs": {"sha256": info["lfs"]["oid"], "size": len(data), "pointerSize": 134}} if "lfs" in info else {}
    return {"rfilename": path, "size": len(data), "blobId": info["oid"], **lfs}


def git_hash(data: bytes) -> str:
    """The name git gives a file of this content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
