"""Patches to the scripts of gradio's page: they repeat work and lose quick input (gradio 6.31).

They do some work again and again, or for every component where it concerns one. They lose the last of several quick
clicks, text typed where an accordion has just opened, and a click at the moment when the previous answer arrives.

With this page's 800 components and 280 handlers that is half of the script of a page that opens, and a fifth of a core
while a run is looked at. The page gets those few scripts with the places below changed; what they do stays the same.
"""

from __future__ import annotations

import re
from pathlib import Path

import gradio as gr
from starlette.responses import Response
from starlette.routing import Route

FOLDER = Path(gr.__file__).parent / "templates" / "frontend" / "assets"
MENDS = {
    # Every input of an answered question is told, from then on and with every answer, that it waits for nothing: what
    # is meant (and said beside) is every input that streams.
    "answers tell only inputs that stream": (
        r"===`complete`\)\{(\w)=`closed`,(?=.*?(\w)\.connection_type===`stream`&&\(\1=`closed`\))",
        r"===`complete`){\2.connection_type===`stream`&&(\1=`closed`),",
    ),
    # A copy of all properties of whatever was clicked is made for arguments that most events do not have.
    "no arguments, no copy": (
        r"(async set_event_args\(\w,(\w)\)\{)(?!if)",
        r"\1if(!Object.keys(\2).length)return()=>{};",
    ),
    # A component that is on the page is known by its number, and looked for among all nevertheless.
    "what is known is not looked for": (
        r"(async get_state\((\w)\)\{let (\w)=this\.#\w\.get\(\2\),\w=)(?=\w+\(this\.root,\2\))",
        r"\1\3?null:",
    ),
    # What was put off ("always_last") is asked as the event before it: the first click twice, the last never. All who
    # read the same event are asked with it, and their turn puts off the others' again: with three readers of a text
    # that is typed quickly, the page goes on asking for as long as it is open. After an error, nobody is asked.
    "what was put off is kept": (
        r"(async dispatch\((\w)\)\{(?:(?!async ).)*?===`defer`\)\{)(?=this\.queue\.add\((\w)\.id\))",
        r"\1(this.put_off??=new Map).set(\3.id,{...\2,type:`fn`,fn_index:\3.id}),",
    ),
    "what was put off is asked": (
        r"(this\.queue\.delete\((\w)\.id\),this\.dispatch\()(\w)(?=\)\)\}\}catch)",
        r"\1this.put_off.get(\2.id)",
    ),
    "what was put off is asked after a failure, too": (
        r"((\w)&&this\.clear_submission\((\w)\.id,\2\),)(?=\w\.forEach\()",
        r"\1this.queue.delete(\3.id)&&this.dispatch(this.put_off.get(\3.id)),",
    ),
    # For every component all targets of all handlers are looked through for its events.
    "events are sorted by component once": (
        r"find_attached_events\((\w),(\w)\)\{let (\w)=\2\.filter\(.*?"
        r"return \1\.props\.shared_props\.attached_events=\3,\1\}",
        r"find_attached_events(\1,\2){let of=(this.attached??=new WeakMap).get(\2);if(!of){of=new Map;"
        r"for(let{targets:all}of \2)for(let[id,name]of new Map([...all].reverse()))"
        r"name&&(of.has(id)||of.set(id,[]),of.get(id).push(name));this.attached.set(\2,of)}"
        r"return \1.props.shared_props.attached_events=[...of.get(\1.id)??[]],\1}",
    ),
    # A frame after an accordion or a tab is opened, all in it is told once more what it held before; what was typed in
    # it meanwhile is gone, if its turn was put off. What it holds now is looked up first.
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
    # Once all is answered, the server closes the stream of answers. What was asked before the page has heard of that
    # waits for an answer on a stream that nobody opens, until something else is asked. The page also cuts the stream
    # that the server is closing; if the server is not done with it, it throws away answers that wait for the next.
    "who waits for an answer opens its stream again": (
        r"(msg===`close_stream`\)\{\w+\(\w+),(\w)\.abort_controller\);(?=return\})",
        r"\1);\2.unclosed_events.size&&\2.open_stream();",
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


def mended_scripts() -> list[Route]:
    """For the `routes` of gradio's `app_kwargs`, which come before gradio's own."""
    files = [file for name in ("Blocks", "core", "index", "statustracker") for file in FOLDER.glob(f"{name}-*.js")]
    found = {file.name: mended(file.read_text(encoding="utf-8")) for file in files}
    return [_route(name, script) for name, (script, done) in found.items() if done]


def _route(name: str, script: str) -> Route:
    def answer(_request: object) -> Response:
        return Response(script, media_type="text/javascript", headers={"cache-control": "no-cache"})

    return Route(f"/assets/{name}", answer)
