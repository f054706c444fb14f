"""Patches to two places of gradio's scripts, made as the page gets them (gradio 6.31).

One forgets what a script types into an accordion just as it opens. One counts the seconds of a loading sign that is
gone.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import gradio as gr
from starlette.responses import Response
from starlette.routing import Route

FOLDER = Path(gr.__file__).parent / "templates" / "frontend" / "assets"
MENDS = {
    # A frame after an accordion or a tab opens, gradio writes the old values into all its fields, so text that a script
    # has typed there is lost. The patch reads the present values first.
    "what is typed into what has just opened stays": (
        r"(async#\w\(\w\)\{for\(let (\w) of \w\.children\)await this\.(#\w)\(\2\.id,\2\),await this\.#\w\(\2\)\}.*?"
        r"async render_previously_invisible_children\(.*?requestAnimationFrame\(\w\)\);)"
        r"(?=for\(let (\w) of (\w)\)this\.#\w\(\4\)\}\})",
        r"\1for(let each of \5)await this.\3(each.id,each);",
    ),
    # A loading sign that is taken away, as that of the page itself, goes on counting its time, 60 times a second.
    "a sign that is gone counts no time": (
        r"(function (\w+)\(\)\{\w+\(\(\)=>\{\w+\(\w+,\(performance\.now\(\)-\w+\(\w+\)\)/1e3\),)"
        r"(?=\w+&&\2\(\).*?(\w+)&&\w+\(\)&&\(\w+\.status===`pending`)",
        r"\1\3&&",
    ),
}
"""What is mended → the place in gradio's script, and what stands there instead."""


def mended(script: str) -> tuple[str, list[str]]:
    """The script as the page gets it, and what was mended in it."""
    done = []
    for what, (place, instead) in MENDS.items():
        script, count = re.subn(place, instead, script, count=1, flags=re.DOTALL)
        done += [what] * count
    return script, done


@cache
def _all_mended() -> dict[str, tuple[str, list[str]]]:
    """The scripts that MENDS is about, by name, as `mended` returns them: read once."""
    files = [file for name in ("core", "statustracker") for file in FOLDER.glob(f"{name}-*.js")]
    return {file.name: mended(file.read_text(encoding="utf-8")) for file in files}


def mended_scripts() -> list[Route]:
    """For the `routes` of gradio's `app_kwargs`, which come before gradio's own."""
    return [_route(name, script) for name, (script, done) in _all_mended().items() if done]


def not_mended() -> list[str]:
    """What of MENDS has no place in these scripts."""
    done = {what for _, found in _all_mended().values() for what in found}
    return [what for what in MENDS if what not in done]


def _route(name: str, script: str) -> Route:
    def answer(_request: object) -> Response:
        return Response(script, media_type="text/javascript", headers={"cache-control": "no-cache"})

    return Route(f"/assets/{name}", answer)
