"""The newest question wins, in the one script that panels, forms and growing texts share; run in node."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import playground

SCRIPT = """
const asked = [], waits = [], heard = [];
global.setTimeout = (go, time) => { waits.push(time); queueMicrotask(go); };
let answers = {}; // path → how its question ends
const ask = (path, body, signal) => new Promise((answer, fail) => {
  asked.push([path, body, signal]);
  answers[path] = { answer, fail };
});
global.window = { playground: { ask } };
NEWEST
const newest = new window.playground.Newest();
const begin = (path, pause) => newest.do(async (ask) => {
  const first = await ask(path, () => ({ n: asked.length }));
  heard.push(first);
  return first;
}, pause);
const turn = () => new Promise((done) => setImmediate(done));
let ended = null;
(async () => {
  DOINGS;
  const sent = asked.map(([path, body, signal]) => [path, body.n, signal.aborted]);
  console.log(JSON.stringify({ asked: sent, heard, waits, awaits: newest.awaits, ended }));
})();
"""


def run(doings: str) -> dict:
    script = (Path(playground.__file__).parent / "ui/front/newest.js").read_text(encoding="utf-8")
    whole = SCRIPT.replace("NEWEST", script).replace("DOINGS", doings)
    return json.loads(subprocess.run(["node", "-e", whole], capture_output=True, text=True, check=True).stdout)


pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node to run the page's script with")


def test_an_older_answer_is_not_heard_however_late_it_comes():
    said = run("""const a = begin("/a"), b = begin("/b"); await turn(); answers["/b"].answer("b"); await b;
      answers["/a"].answer("a"); ended = [(await a) ?? null, await b]""")
    assert said["heard"] == ["b"] and said["ended"] == [None, "b"]
    assert [each[2] for each in said["asked"]] == [True, False], "the older request is cut off"


def test_what_is_asked_within_a_pause_is_asked_once():
    said = run("""const all = [begin("/a", 120), begin("/b", 120), begin("/c", 120)];
      await turn(); answers["/c"].answer("c"); await Promise.all(all)""")
    assert [each[0] for each in said["asked"]] == ["/c"] and said["waits"] == [120] * 3


def test_a_server_that_does_not_answer_is_asked_again_with_what_holds_by_then():
    said = run("""const a = begin("/a"); await turn(); answers["/a"].fail(new TypeError("no network")); await turn();
      answers["/a"].answer("now"); await a""")
    assert [each[1] for each in said["asked"]] == [0, 1] and said["heard"] == ["now"] and len(said["waits"]) == 1


def test_after_an_answer_or_when_it_is_dropped_nothing_is_awaited():
    assert run("""const a = begin("/a"); await turn()""")["awaits"]
    assert not run("""const a = begin("/a"); await turn(); answers["/a"].answer("a"); await a""")["awaits"]
    said = run("""const a = begin("/a"); await turn(); newest.drop();
      answers["/a"].answer("a"); ended = (await a) ?? null""")
    assert not said["awaits"] and said["heard"] == [] and said["ended"] is None


def test_an_error_of_the_work_itself_is_no_answer_of_the_server():
    said = run(
        """ended = await newest.do(async () => { throw new Error("ours"); }).catch((problem) => problem.message)"""
    )
    assert said["ended"] == "ours" and said["asked"] == [] and not said["awaits"]
