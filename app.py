"""python app.py: the Transformer Playground as a page in the browser."""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Callable
from typing import Any

from playground.starting import ended_by_an_interrupt

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # before gradio is imported: nothing leaves for another host


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line's settings; a bad one ends with exit code 2 and a sentence."""
    parser = argparse.ArgumentParser(prog="python app.py", description="Serve the Transformer Playground.")
    parser.add_argument("--host", help="address to listen on (default: 127.0.0.1; 0.0.0.0 for the whole network)")
    parser.add_argument("--port", type=_port, help="port to listen on (default: 7860, or the next one that is free)")
    parser.add_argument("--share", action="store_true", help="also make a public link that lasts a week")
    parser.add_argument(
        "--limits",
        choices=("local", "class", "public"),
        help="what visitors may ask for (default: PLAYGROUND_LIMITS, else local, or class where others can reach it)",
    )
    parser.add_argument(
        "--behind-proxy",
        action="store_true",
        help="all visitors come through a proxy of yours, which says in X-Forwarded-For from where",
    )
    parser.add_argument(
        "--ephemeral", action="store_true", help="keep nothing: models, runs and classes end with the server"
    )
    parser.add_argument("--mcp", action="store_true", help="also offer the endpoints to language models as tools")
    return parser.parse_args(arguments)


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"a port is a whole number from 1 to 65535, not {text!r}")
    return int(text)


def main() -> None:
    """Parse, build, serve until interrupted."""
    arguments = parse()
    if arguments.mcp and importlib.util.find_spec("mcp") is None:
        raise SystemExit("--mcp needs one more package: pip install 'gradio[mcp]', then start again.")
    with ended_by_an_interrupt():
        page, host, launch = prepare(arguments)
    try:
        launch(page, host, arguments.port, arguments.share, mcp_server=arguments.mcp)
    except OSError as problem:
        raise SystemExit(f"The page cannot be served at {host}: {problem}. Choose another --port or --host.") from None
    except KeyboardInterrupt:  # before it was served
        raise SystemExit(130) from None


def prepare(arguments: argparse.Namespace) -> tuple[Any, str, Callable[..., None]]:
    """The page, the address to serve it at, and what serves it; says on which limits it stands where others come."""
    if os.environ.get("SPACES_ZERO_GPU"):
        import spaces  # noqa: F401 (installed there; has to come before anything that could ask for a GPU)
    from playground.service.data_folder import (
        BusyError,
        DataFolder,
        data_folder,
        folder_for_uploads,
        forget_crashed_servers,
    )  # fmt: skip

    forget_crashed_servers()
    if not os.environ.get("GRADIO_TEMP_DIR"):
        os.environ["GRADIO_TEMP_DIR"] = str(folder_for_uploads())
    from playground.processes import tune_process
    from playground.service.limits import limits_here
    from playground.ui.app import build_app, launch
    from playground.ui.where import Reach, is_loopback

    # a Space tells its host by GRADIO_SERVER_NAME, and only one listening on all addresses can be reached there
    host = (
        arguments.host
        or os.environ.get("GRADIO_SERVER_NAME")
        or ("0.0.0.0" if os.environ.get("SPACE_ID") else "127.0.0.1")
    )
    others = arguments.share or not is_loopback(host)
    try:
        limits = limits_here(arguments.limits, strangers=others)
    except ValueError as problem:
        raise SystemExit(f"PLAYGROUND_LIMITS: {problem}.") from None
    tune_process(serves=1 if limits.kind == "local" else limits.jobs)  # before there are threads
    if others and limits.kind != "local":
        most = f"{limits.parameters:,} parameters, {limits.seconds / 60:,.0f} minutes per run"
        print(f"Others can reach this page, so it keeps the limits “{limits.kind}”: at most {most}.")
        print("Choose others with --limits local, class or public.", flush=True)
    reach = Reach.here(behind_proxy=arguments.behind_proxy)
    try:
        data = DataFolder(None if arguments.ephemeral else data_folder())
    except BusyError:
        data = DataFolder()
        print("Another playground keeps its models in the data folder, so this one keeps its own only until it ends.")
        print("Name another folder with PLAYGROUND_DATA to keep them.", flush=True)
    return build_app(limits, reach=reach, data=data), host, launch


if __name__ == "__main__":
    main()
