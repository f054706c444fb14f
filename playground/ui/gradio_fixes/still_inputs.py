"""Gradio's page tells every input of an answered question, from then on and with every answer, that it waits for none.

Each of them is looked up in the tree of all components: after Train was pressed once, with its fifty inputs, a look at
the run costs the browser 20 ms more, a fifth of a core while something is trained (gradio 6.31, whose script means to
do so only for inputs that stream). Here the page gets the script with that condition.
"""

from __future__ import annotations

import re
from pathlib import Path

import gradio as gr
from starlette.responses import Response
from starlette.routing import Route

SCRIPT_FILES = sorted((Path(gr.__file__).parent / "templates" / "frontend" / "assets").glob("Blocks-*.js"))
_MEANT = re.compile(r"(\w)\.connection_type===`stream`&&\((\w)=`closed`\)")


def mended(script: str) -> str:
    """The script with its condition; unchanged where there is nothing to mend."""
    if (meant := _MEANT.search(script)) is None:
        return script
    question, state = meant.groups()
    said = f"===`complete`){{{state}=`closed`,"
    return script.replace(said, f"===`complete`){{{question}.connection_type===`stream`&&({state}=`closed`),")


def still_inputs() -> list[Route]:
    """For the `routes` of gradio's `app_kwargs`, which come before gradio's own."""
    return [_route(file) for file in SCRIPT_FILES]


def _route(file: Path) -> Route:
    script = mended(file.read_text(encoding="utf-8"))

    def answer(_request: object) -> Response:
        return Response(script, media_type="text/javascript", headers={"cache-control": "no-cache"})

    return Route(f"/assets/{file.name}", answer)
