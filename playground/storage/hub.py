"""The Hub: push a checkpoint as a model repository, or pull one.

    pushed = push(checkpoint, "anna/tales", page)    # with the stored login, or token=…
    checkpoint = pull("anna/tales")

A repository holds a checkpoint's files (safetensors and JSON only) and what `page` makes for it: a model card and the
curve's picture. A pulled one may also be a GPT-2, Llama, Mixtral or Qwen3 from Transformers.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..model import ModelConfig
from .bounds import MAX_PARAMETERS, Check, check_bounds
from .checkpoint import Checkpoint, write_checkpoint
from .errors import PICKLES, CheckpointError
from .json_files import MAX_BYTES
from .opening import check_folder, open_folder, sanitise
from .tensors import MAX_HEADER_BYTES
from .transformers_import import WEIGHTS

TAG = "transformer-playground"
"""The tags that every model of this project carries on the Hub."""
OURS = ("config.json", "tokenizer.json", "history.json", "model.safetensors")
_OF_TRANSFORMERS = (
    "config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors.index.json", "adapter_config.json",
)  # fmt: skip
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")

Page = Callable[[Checkpoint, str], Mapping[str, bytes]]
"""(checkpoint, user/name) → name → content of the files that people see in a repository, README.md among them."""


class HubError(CheckpointError):
    """What went wrong between here and the Hub, as a sentence to show. Never holds a token."""


@dataclass(frozen=True)
class Pushed:
    """A checkpoint is on the Hub."""

    repo_id: str
    """user/name."""
    url: str
    """The page of the repository."""
    created: bool
    """Whether the push created the repository."""
    files: dict[str, int]
    """File name → bytes, for the checkpoint's files in the repository."""


def push(
    checkpoint: Checkpoint, repo_id: str, page: Page, *, token: str | None = None, private: bool = False
) -> Pushed:
    """Put a checkpoint into a model repository ("user/name", or "name" for your own), created if needed.

    `token` defaults to the stored login (`hf auth login`, or the variable HF_TOKEN). All files arrive in one commit.
    Raises HubError; a repository that holds anything but a model of this project is left alone.
    """
    from huggingface_hub import CommitOperationAdd, HfApi

    repo_id = repo_id.strip()
    check_name(repo_id)
    token = login(token)
    api = HfApi(token=token)
    with exchange(repo_id, token):
        if "/" not in repo_id:
            repo_id = f"{api.whoami()['name']}/{repo_id}"
        created = _free_or_ours(api, repo_id)
    with tempfile.TemporaryDirectory() as temporary:
        folder = write_repository(checkpoint, Path(temporary) / "model", repo_id, page)
        files = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
        with exchange(repo_id, token):
            address = api.create_repo(repo_id, private=private, exist_ok=True)
            additions = [CommitOperationAdd(name, folder / name) for name in files]
            api.create_commit(repo_id, additions, commit_message=f"Push {checkpoint.name}")
    return Pushed(repo_id, str(address), created, files)


def check_name(repo_id: str) -> None:
    """Raise HubError unless this can be a repository's name; called before a login is asked for."""
    from huggingface_hub.utils import validate_repo_id

    with exchange(repo_id):
        validate_repo_id(repo_id)


def write_repository(checkpoint: Checkpoint, folder: Path, repo_id: str, page: Page) -> Path:
    """The folder as `push` uploads it."""
    # the path of a text on its owner's disk is private
    about = {name: value for name, value in checkpoint.about.items() if name != "source"}
    checkpoint = replace(checkpoint, about=about)
    write_checkpoint(folder, checkpoint)
    for name, content in page(checkpoint, repo_id).items():
        (folder / name).write_bytes(content)
    return folder


def pull(
    repo_id: str,
    *,
    revision: str | None = None,
    token: str | bool | None = None,
    cache: str | Path | None = None,
    max_parameters: int = MAX_PARAMETERS,
    check: Check = check_bounds,
) -> Checkpoint:
    """The checkpoint in a model repository: one of this project, or Transformers' GPT-2, Llama, Mixtral or Qwen3.

    Sizes are checked before anything is fetched, and files are checked before memory is allocated for them. `cache`
    is where downloads are kept (default: the Hub's own cache). Without a token the stored login is used, if there is
    one; False uses none. Raises HubError or CheckpointError, or what `check` raises for a config that is too large
    for the caller.
    """
    from huggingface_hub import HfApi, hf_hub_download

    repo_id, token = repo_id.strip(), login(token) if isinstance(token, str) else token
    with exchange(repo_id, token):
        info = HfApi(token=token).model_info(repo_id, revision=revision, files_metadata=True)
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
        names = _wanted(sizes, repo_id)
        _check_sizes({name: sizes[name] for name in names}, max_parameters, repo_id)

    def fits(config: ModelConfig) -> None:
        check(config)
        check_bounds(config, max_parameters)

    def fetch(name: str) -> Path:
        with exchange(repo_id, token):
            return Path(hf_hub_download(repo_id, name, revision=info.sha, token=token, cache_dir=cache)).parent

    folder = fetch("config.json")
    try:
        check_folder(folder, fits)  # before what may be gigabytes is fetched
        for name in names:
            fetch(name)
        checkpoint = open_folder(folder, check=fits)
    except CheckpointError as problem:  # the local path would mean nothing to the user
        raise type(problem)(str(problem).replace(str(folder), repo_id)) from problem
    name = repo_id.split("/")[-1] if "imported_from" in checkpoint.about else checkpoint.name
    sane = sanitise(replace(checkpoint, name=name))
    return replace(sane, about={**sane.about, "pulled_from": repo_id, "revision": info.sha})


_REFUSED = (
    "the Hub does not accept this login. Sign in again with hf auth login; HF_TOKEN takes precedence, so renew it if "
    "set"
)
_NO_LOGIN = "this machine is not signed in to the Hub. Run hf auth login, or set the variable HF_TOKEN"
_NOT_THERE = "there is no {0} on the Hub, or it is private{1}; check the spelling"
_UNREACHABLE = "the Hub cannot be reached: check the connection, and that HF_HUB_OFFLINE is not set"
_BY_ERROR = {
    "HFValidationError": "{0!r} is not a repository's name: write it as user/name, with letters, digits, - _ and .",
    "GatedRepoError": "{0} is gated: open its page on the Hub, accept its terms, and try again with that account's "
    "login",
    "RevisionNotFoundError": "{0} has no such revision: check its name on the repository's History page",
    "RepositoryNotFoundError": _NOT_THERE,
    "LocalTokenNotFoundError": _NO_LOGIN,
    "LocalEntryNotFoundError": _UNREACHABLE,
    "EntryNotFoundError": "{0} lacks a file that it should have: check its Files page",
}
"""Errors from huggingface_hub.errors."""
_BY_STATUS = {
    401: _REFUSED,
    402: "the Hub needs a payment method or a subscription for {0}. Choose free hardware, or add one",
    403: "this login may not change {0}. Use a name of your own account and a token that may write (Settings, Access "
    "Tokens)",
    404: _NOT_THERE,
    409: "{0} is being changed by someone else right now: try again in a moment",
    429: "the Hub had too many requests. Try again in a few minutes",
}


@contextlib.contextmanager
def exchange(subject: str, token: str | bool | None = None) -> Iterator[None]:
    """Turn what huggingface_hub and the network raise into HubErrors about a repository or a service."""
    try:
        yield
    except HubError:
        raise
    except Exception as problem:
        private = " and this login may not see it" if token else ": sign in first"
        # from None: requests that failed carry their headers, and so the token
        raise HubError(_sentence(problem).format(subject, private)) from None


def _sentence(problem: Exception) -> str:
    """What a person should know and do, given huggingface_hub's error and the Hub's HTTP status."""
    response = getattr(problem, "response", None)
    status = getattr(response, "status_code", None)
    if status == 401 and "Invalid credentials" in str(response.headers.get("x-error-message")):
        return _REFUSED
    for kind in type(problem).__mro__:
        if kind.__name__ in _BY_ERROR:
            return _BY_ERROR[kind.__name__]
    if status is None and isinstance(problem, ValueError) and "metadata" in str(problem):
        return "the Hub does not accept the card's front matter, which is our mistake: please report it"
    if status is None or status in _BY_STATUS:
        return _BY_STATUS.get(status, _UNREACHABLE)
    if status >= 500:
        return f"the Hub has trouble at the moment (it answered {status}): try again later"
    return f"the Hub refused to handle {{0}} (it answered {status})"


def login(token: str | None = None) -> str:
    """The token to use: the given one, or the stored login's. Raises HubError if there is no valid one."""
    from huggingface_hub import get_token

    if token is None:
        with exchange("the login"):
            token = get_token()
    if not token:
        raise HubError(_NO_LOGIN)
    if not _TOKEN.fullmatch(token):  # an HTTP client would quote it in its complaint
        raise HubError("the stored token is not valid: it contains spaces or symbols. Sign in again")
    return token


def _free_or_ours(api, repo_id: str) -> bool:
    """Whether the repository has yet to be made. Raises HubError if it holds anything that is not ours to replace."""
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
    """The files to fetch. Raises HubError if there is no model that could be opened."""
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
    if weights > 4 * max_parameters * 1.25 + MAX_HEADER_BYTES:  # a quarter for what GPT-2 stores besides weights
        raise HubError(
            f"{repo_id} has {weights / 1e6:,.0f} MB of weights; models of at most {max_parameters:,} parameters can be "
            "opened here"
        )
    most = max(MAX_BYTES.values())
    large = next((name for name, size in sizes.items() if name.endswith(".json") and size > most), None)
    if large:
        raise HubError(f"{large} of {repo_id} is too large to be what it says")
