"""The Hub: push a checkpoint as a model repository, pull one, find those that others made. Problems become sentences.

    pushed = push(checkpoint, "anna/tales")          # with the stored login, or token=…
    checkpoint = pull("anna/tales")

A repository holds the files of a checkpoint, a model card and the curve's picture: safetensors and JSON only. A pulled
one may also be a GPT-2, Llama, Mixtral or Qwen3 of Transformers.
"""

from __future__ import annotations

import contextlib
import math
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ..model import ModelConfig
from .bounds import MAX_PARAMETERS
from .card import TAG, model_card
from .checkpoint import PICKLES, write_checkpoint
from .errors import CheckpointError
from .header import MAX_HEADER_BYTES
from .held import Checkpoint
from .opening import check_folder, open_folder
from .picture import curve_png
from .record import regular
from .transformers_import import WEIGHTS
from .values import MAX_BYTES

PICTURE = "curve.png"
OURS = ("config.json", "tokenizer.json", "history.json", "model.safetensors")
_OF_TRANSFORMERS = (
    "config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors.index.json", "adapter_config.json",
)  # fmt: skip
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")


class HubError(CheckpointError):
    """What went wrong between here and the Hub, in a sentence meant to be shown. Never holds a token."""


@dataclass(frozen=True)
class Pushed:
    """A checkpoint is on the Hub."""

    repo_id: str
    """user/name."""
    url: str
    """The page of the repository."""
    created: bool
    """Whether the repository was new."""
    files: dict[str, int]
    """Name → bytes of what the repository now holds of this checkpoint."""


def push(
    checkpoint: Checkpoint,
    repo_id: str,
    *,
    token: str | None = None,
    private: bool = False,
    endpoint: str | None = None,
) -> Pushed:
    """Put a checkpoint into a model repository ("user/name", or "name" for one's own), made if there is none.

    `token` defaults to the stored login (`hf auth login`, or the variable HF_TOKEN). All files arrive in one commit.
    Raises HubError; a repository that holds something else than a model of this project is left alone.
    """
    from huggingface_hub import CommitOperationAdd, HfApi

    repo_id = repo_id.strip()
    check_name(repo_id)
    token = login(token)
    api = HfApi(endpoint=endpoint, token=token)
    with in_words(repo_id, token):
        if "/" not in repo_id:
            repo_id = f"{api.whoami()['name']}/{repo_id}"
        created = _free_or_ours(api, repo_id)
    with tempfile.TemporaryDirectory() as temporary:
        folder = write(checkpoint, Path(temporary) / "model", repo_id)
        files = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
        with in_words(repo_id, token):
            address = api.create_repo(repo_id, private=private, exist_ok=True)
            additions = [CommitOperationAdd(name, folder / name) for name in files]
            api.create_commit(repo_id, additions, commit_message=_message(checkpoint))
    return Pushed(repo_id, str(address), created, files)


def check_name(repo_id: str) -> None:
    """Raise HubError unless this may be a repository's name, before anybody is asked for a login."""
    from huggingface_hub.utils import validate_repo_id

    with in_words(repo_id):
        validate_repo_id(repo_id)


def write(checkpoint: Checkpoint, folder: Path, repo_id: str | None = None) -> Path:
    """The folder as `push` uploads it: the checkpoint's own files, its card, and the curve's picture if it has one."""
    # where a text lies on its owner's disk is nobody else's business
    about = {name: value for name, value in checkpoint.about.items() if name != "source"}
    write_checkpoint(folder, replace(checkpoint, about=about))
    ladder = about.get("ladder")
    picture = curve_png(checkpoint.history, ladder if isinstance(ladder, dict) else None)
    if picture:
        (folder / PICTURE).write_bytes(picture)
    card = model_card(checkpoint, repo_id=repo_id, picture=PICTURE if picture else None)
    (folder / "README.md").write_text(card, encoding="utf-8")
    return folder


def pull(
    repo_id: str,
    *,
    revision: str | None = None,
    token: str | bool | None = None,
    endpoint: str | None = None,
    cache: str | Path | None = None,
    max_parameters: int = MAX_PARAMETERS,
    check: Callable[[ModelConfig], None] = lambda config: None,
) -> Checkpoint:
    """The checkpoint of a model repository: one of this project, or a GPT-2, Llama, Mixtral or Qwen3 of Transformers.

    Sizes are asked for before anything is fetched, and files are checked before memory is allocated for them. `cache`
    is where downloads are kept (default: the Hub's own cache). Without a token the stored login is used, if there is
    one; False uses none. `check` may raise a ValueError of its own for a config that is too much for
    this place. Raises HubError or CheckpointError.
    """
    from huggingface_hub import HfApi, hf_hub_download

    if isinstance(token, str):
        token = login(token)
    repo_id = repo_id.strip()
    with in_words(repo_id, token):
        info = HfApi(endpoint=endpoint, token=token).model_info(repo_id, revision=revision, files_metadata=True)
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
        names = _wanted(sizes, repo_id)
        _check_sizes({name: sizes[name] for name in names}, max_parameters, repo_id)

    def fetch(name: str) -> Path:
        with in_words(repo_id, token):
            path = hf_hub_download(repo_id, name, revision=info.sha, token=token, endpoint=endpoint, cache_dir=cache)
        return Path(path).parent

    check_folder(fetch("config.json"), max_parameters, check)  # before what may be gigabytes is fetched
    for name in names:
        folder = fetch(name)
    checkpoint = open_folder(folder, max_parameters=max_parameters, check=check)
    name = repo_id.split("/")[-1] if "imported_from" in checkpoint.about else checkpoint.name
    checked = regular(replace(checkpoint, name=name))
    return replace(checked, about={**checked.about, "pulled_from": repo_id, "revision": info.sha})


def find(*, limit: int = 20, token: str | None = None, endpoint: str | None = None) -> list[str]:
    """Names of public models of this project on the Hub, the most recently changed first. Raises HubError."""
    from huggingface_hub import HfApi

    with in_words("the Hub", token):
        found = HfApi(endpoint=endpoint, token=token or False).list_models(
            filter=TAG, sort="last_modified", limit=limit
        )
        return [model.id for model in found]


@contextlib.contextmanager
def in_words(repo_id: str, token: str | bool | None = None) -> Iterator[None]:
    """Turn what huggingface_hub and the network raise into HubErrors about this repository."""
    try:
        yield
    except HubError:
        raise
    except Exception as problem:
        # from None: requests that failed carry their headers, and so the token
        raise HubError(sentence_for(problem, repo_id, signed_in=bool(token))) from None


def sentence_for(problem: Exception, repo_id: str, *, signed_in: bool = True) -> str:
    """What a person should know and do about a failed exchange with the Hub."""
    from huggingface_hub import errors

    status = getattr(getattr(problem, "response", None), "status_code", None)
    if isinstance(problem, errors.HFValidationError):
        return f"{repo_id!r} is not a repository's name: write it as user/name, with letters, digits, - _ and ."
    if isinstance(problem, errors.GatedRepoError):
        return (
            f"{repo_id} is gated: open its page on the Hub, accept its terms, and try again with that account's login"
        )
    if isinstance(problem, errors.RevisionNotFoundError):
        return f"{repo_id} has no such revision: check its name on the repository's History page"
    if isinstance(problem, errors.EntryNotFoundError) and status is not None:
        return f"{repo_id} lacks a file that it should have: look at its Files page"
    refused = (
        "the Hub does not accept this login: sign in again (on this machine: hf auth login; or renew HF_TOKEN, which "
        "takes precedence)"
    )
    if status == 401 and "Invalid credentials" in str(_header(problem, "x-error-message")):
        return refused
    if isinstance(problem, errors.RepositoryNotFoundError):
        private = "or it is private and this login may not see it" if signed_in else "or it is private: sign in first"
        return f"there is no {repo_id} on the Hub, {private}; check the spelling"
    if isinstance(problem, errors.LocalTokenNotFoundError):
        return _NO_LOGIN
    if status == 401:
        return refused
    if status == 402:
        return f"the Hub asks for a payment method or a subscription for {repo_id}: choose free hardware, or add one"
    if status == 403:
        return (
            f"this login may not do that to {repo_id}: use a name of your own account, and a token that may write "
            "(on the Hub: Settings, Access Tokens)"
        )
    if status == 404:
        return f"there is no {repo_id} on the Hub: check the spelling"
    if status == 409:
        return f"{repo_id} is being changed by someone else right now: try again in a moment"
    if status == 429:
        return "the Hub asks for patience, there were too many requests: try again in a few minutes"
    if status is not None and status >= 500:
        return f"the Hub has trouble at the moment (it answered {status}): try again later"
    if status is not None:
        return f"the Hub refused to handle {repo_id} (it answered {status})"
    if isinstance(problem, ValueError) and "metadata" in str(problem):
        return "the Hub does not accept the card's front matter, which is our mistake: please report it"
    return "the Hub cannot be reached: check the connection, and that HF_HUB_OFFLINE is not set"


_NO_LOGIN = "nobody is signed in to the Hub: run hf auth login on this machine, or set the variable HF_TOKEN"


def _header(problem: Exception, name: str) -> str | None:
    return getattr(problem.response, "headers", {}).get(name)


def login(token: str | None = None) -> str:
    """The token to use: this one, or the stored login's. Raises HubError where there is none that could be one."""
    from huggingface_hub import get_token

    if token is None:
        with in_words("the login"):
            token = get_token()
    if not token:
        raise HubError(_NO_LOGIN)
    if not _TOKEN.fullmatch(token):  # an HTTP client would quote it in its complaint
        raise HubError("the stored token cannot be one, it holds spaces or other signs: sign in again")
    return token


def _free_or_ours(api, repo_id: str) -> bool:
    """Whether the repository is still to be made. Raises HubError where it holds what is not ours to replace."""
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        info = api.model_info(repo_id)
    except RepositoryNotFoundError:
        return True
    files = {file.rfilename for file in info.siblings or []} - {".gitattributes", "README.md"}
    if files and TAG not in (info.tags or []):
        raise HubError(f"{repo_id} holds something else already, which would be lost: choose another name")
    return False


def _wanted(sizes: dict[str, int], repo_id: str) -> list[str]:
    """The files to fetch. Raises HubError where there is no model that could be opened."""
    names = [name for name in sizes if name in (*OURS, *_OF_TRANSFORMERS) or WEIGHTS.fullmatch(name)]
    if not any(WEIGHTS.fullmatch(name) for name in names):
        pickled = next((name for name in sorted(sizes) if name.lower().endswith(PICKLES)), None)
        if pickled:
            raise HubError(f"{repo_id} has its weights in {pickled}, a pickle, which can run code and is never opened")
        raise HubError(f"{repo_id} has no model.safetensors: it is not a model that can be opened here")
    for required in ("config.json", "tokenizer.json"):
        if required not in names:
            raise HubError(f"{repo_id} has no {required}: it is not a model that can be opened here")
    return names


def _check_sizes(sizes: dict[str, int], max_parameters: int, repo_id: str) -> None:
    weights = sum(size for name, size in sizes.items() if name.endswith(".safetensors"))
    if weights > 4 * max_parameters * 1.25 + MAX_HEADER_BYTES:  # a quarter for what GPT-2 stores besides its weights
        raise HubError(
            f"{repo_id} has {weights / 1e6:,.0f} MB of weights; models of at most {max_parameters:,} parameters can be "
            "opened here"
        )
    most = max(MAX_BYTES.values())
    large = next((name for name, size in sizes.items() if name.endswith(".json") and size > most), None)
    if large:
        raise HubError(f"{large} of {repo_id} is too large to be what it says")


def _message(checkpoint: Checkpoint) -> str:
    loss = checkpoint.history.val_loss
    known = loss is not None and math.isfinite(loss)
    return f"Push {checkpoint.name}" + (f", validation loss {loss:.4f}" if known else "")
