"""Pages of this folder get their web routes when they are served; gradio makes them twice before that, for nobody."""

from collections.abc import Iterator
from typing import Any

import pytest
from gradio import blocks

from playground.service.board import Board
from playground.ui.app import build_app

from .raw import serving
from .runs import small_limits


class _Unserved:
    """What a page has instead of an app until it is launched, which makes one anew."""


@pytest.fixture(scope="package", autouse=True)
def routes_where_served() -> Iterator[None]:
    """A page that no test serves is made in half of the time: eighty routes take 0.15 s of a slow core."""
    create = blocks.App.create_app

    def app(page: blocks.Blocks, *args: Any, **how: Any) -> Any:
        return _Unserved() if how == {"mcp_server": False} and not args else create(page, *args, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks.App, "create_app", staticmethod(app))
        yield


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Board, str]]:
    """The whole page with one place for training; its board, and its address."""
    with serving(build_app(small_limits(jobs=1, seconds=60.0, waiting=3))) as (page, address):
        yield page.board, address
