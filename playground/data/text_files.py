"""Text from outside: a visitor's upload, a local file, or one in a public Hub repository. All errors are sentences."""

from __future__ import annotations

from pathlib import Path

from .errors import TextError

MAX_BYTES = 5_000_000


def decode_upload(data: bytes, *, name: str = "the file", max_bytes: int = MAX_BYTES) -> str:
    """The text of an uploaded file: UTF-8, with or without byte-order mark, of at most `max_bytes`."""
    if not data.strip():
        raise TextError(f"{name} is empty: choose a file with at least a page of text")
    if len(data) > max_bytes:
        raise TextError(f"{name} has {len(data) / 1e6:.1f} MB; at most {max_bytes / 1e6:.1f} MB can be used here")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise TextError(f"{name} is UTF-{32 if data[2:4] == bytes(2) else 16} text: save it as UTF-8 and try again")
    if b"\0" in data:
        raise TextError(f"{name} is not a text file: it holds binary data")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise TextError(
            f"{name} is not UTF-8 text (byte {problem.start:,} does not fit): save it as UTF-8 and try again"
        ) from problem
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_file(path: str | Path, *, name: str = "", max_bytes: int = MAX_BYTES) -> str:
    """The text of a local file. Error messages call it by its `name`, or else by its path."""
    path, name = Path(path), name or str(path)
    if path.is_dir():
        raise TextError(f"{name} is a folder: name a text file")
    if path.exists() and not path.is_file():
        raise TextError(f"{name} is not a file that can be read again: save its text in one")
    try:
        size = path.stat().st_size
        if size > max_bytes:
            raise TextError(f"{name} has {size / 1e6:.1f} MB; at most {max_bytes / 1e6:.1f} MB can be used here")
        data = path.read_bytes()
    except OSError as problem:
        raise TextError(f"{name} cannot be read: {problem.strerror or problem}") from problem
    return decode_upload(data, name=name, max_bytes=max_bytes)


def read_hub(
    repo: str, filename: str, *, repo_type: str = "dataset", max_bytes: int = MAX_BYTES, endpoint: str | None = None
) -> str:
    """The text of one file in a public Hub repository ("user/name"); its size is checked before it is fetched."""
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HFValidationError, RepositoryNotFoundError

    where = f"{filename} of {repo}"
    repo, filename = repo.strip(), filename.strip()
    if not repo or not filename:
        raise TextError("name a repository as user/name and a text file in it")
    try:
        try:
            found = HfApi(endpoint=endpoint, token=False).get_paths_info(repo, [filename], repo_type=repo_type)
            if not found:
                raise TextError(f"there is no file {filename} in {repo}: check its name on the repository's Files page")
            size = getattr(found[0], "size", 0)
            if size > max_bytes:
                raise TextError(f"{where} has {size / 1e6:.1f} MB; at most {max_bytes / 1e6:.1f} MB can be used here")
            local_only = False
        except (TextError, HFValidationError, RepositoryNotFoundError, EntryNotFoundError):
            raise
        except Exception:  # offline: HTTP libraries differ in their errors; an earlier download may be in the cache
            local_only = True
        path = hf_hub_download(
            repo, filename, repo_type=repo_type, endpoint=endpoint, local_files_only=local_only, token=False
        )
    except TextError:
        raise
    except HFValidationError as problem:
        raise TextError(f"{repo!r} is not a repository's name: write it as user/name") from problem
    except RepositoryNotFoundError as problem:
        raise TextError(f"there is no public {repo_type} {repo} on the Hub: check the spelling") from problem
    except Exception as problem:  # the network can fail in many ways, all with one remedy
        raise TextError(
            f"{where} could not be fetched from the Hub: check the connection, or paste the text instead"
        ) from problem
    return read_file(path, name=where, max_bytes=max_bytes)
